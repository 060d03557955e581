//! Responses of the server: range requests, and object store operations.

use super::http::{Request, Response};
use super::{Fault, Parts, State, StoredFile};

impl State {
    pub(super) fn handle(&mut self, request: &Request, body: &[u8], faults: &[Fault]) -> Response {
        for fault in faults {
            match fault {
                Fault::Status(status) => return Response::new(*status, "<Error><Code>Broken</Code></Error>"),
                Fault::Redirect(to) => return Response::new(302, "").with("location", to),
                Fault::HeadRefused if request.method == "HEAD" => return Response::new(403, ""),
                _ => {}
            }
        }
        let upload = request.query_value("uploadId").map(str::to_owned);
        match (request.method.as_str(), upload) {
            ("GET" | "HEAD", _) => match self.files.get(&request.path) {
                Some(file) => read(request, file, faults),
                None => Response::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
            },
            ("POST", None) if request.query_value("uploads").is_some() => self.start(&request.path),
            ("PUT", Some(upload)) => self.part(request, &upload, body),
            ("POST", Some(upload)) => self.complete(&upload),
            ("DELETE", Some(upload)) => {
                self.uploads.remove(&upload);
                Response::new(204, "")
            }
            ("PUT", None) => {
                if request.header("if-none-match") == Some("*") && self.files.contains_key(&request.path) {
                    return Response::new(412, "");
                }
                self.put(&request.path, body);
                Response::new(200, "").with("etag", format!("\"{}\"", self.versions))
            }
            _ => Response::new(405, ""),
        }
    }

    fn start(&mut self, path: &str) -> Response {
        self.versions += 1;
        let id = format!("upload-{}", self.versions);
        self.uploads.insert(id.clone(), Parts { path: path.to_owned(), ..Parts::default() });
        Response::new(
            200,
            format!(
                "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            ),
        )
    }

    fn part(&mut self, request: &Request, upload: &str, body: &[u8]) -> Response {
        let number = request.query_value("partNumber").and_then(|number| number.parse().ok());
        match (self.uploads.get_mut(upload), number) {
            (Some(parts), Some(number)) => {
                parts.parts.insert(number, body.to_vec());
                Response::new(200, "").with("etag", format!("\"part-{number}\""))
            }
            _ => Response::new(404, "<Error><Code>NoSuchUpload</Code></Error>"),
        }
    }

    fn complete(&mut self, upload: &str) -> Response {
        let Some(parts) = self.uploads.remove(upload) else {
            return Response::new(404, "<Error><Code>NoSuchUpload</Code></Error>");
        };
        let bytes: Vec<u8> = parts.parts.into_values().flatten().collect();
        self.put(&parts.path, &bytes);
        let tag = self.versions;
        Response::new(
            200,
            format!("<CompleteMultipartUploadResult><ETag>\"{tag}\"</ETag></CompleteMultipartUploadResult>"),
        )
    }
}

/// A file, or the requested range of it.
fn read(request: &Request, file: &StoredFile, faults: &[Fault]) -> Response {
    let has = |fault: &Fault| faults.contains(fault);
    let len = file.bytes.len() as u64;
    let tag = format!("{}\"{}\"", if has(&Fault::WeakTags) { "W/" } else { "" }, file.version);
    let wanted = request.header("if-match");
    if wanted.is_some_and(|wanted| wanted != tag) && !has(&Fault::NoConditions) {
        return Response::new(412, "");
    }
    let versioned = |mut response: Response| {
        if !has(&Fault::NoVersion) && !has(&Fault::TimesOnly) {
            response = response.with("etag", tag.clone());
        }
        if !has(&Fault::NoVersion) {
            response = response
                .with("last-modified", format!("Sun, 06 Nov 1994 08:49:{:02} GMT", file.version % 60));
        }
        response
    };
    match request.range.filter(|_| !has(&Fault::NoRanges)) {
        None => versioned(Response::new(200, file.bytes.to_vec())),
        Some((first, _)) if first >= len => {
            Response::new(416, "").with("content-range", format!("bytes */{len}"))
        }
        Some((first, end)) => {
            let end = end.min(len);
            // Another range of the same length, if there is one.
            let first = if has(&Fault::OtherRange) { first.saturating_sub(1) } else { first };
            let range = usize::try_from(first).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
            let content_range = format!("bytes {first}-{}/{len}", end - 1);
            versioned(Response::new(206, &file.bytes[range]).with("content-range", content_range))
        }
    }
}
