//! What the server answers: files by range, and what a store does with objects.

use super::wire::{Answer, Request};
use super::{Fault, Parts, State, Stored};

impl State {
    pub(super) fn answer(&mut self, request: &Request, body: &[u8], faults: &[Fault]) -> Answer {
        for fault in faults {
            match fault {
                Fault::Status(status) => return Answer::new(*status, "<Error><Code>Broken</Code></Error>"),
                Fault::Redirect(to) => return Answer::new(302, "").with("location", to),
                Fault::HeadRefused if request.method == "HEAD" => return Answer::new(403, ""),
                _ => {}
            }
        }
        let upload = request.asked("uploadId").map(str::to_owned);
        match (request.method.as_str(), upload) {
            ("GET" | "HEAD", _) => match self.files.get(&request.path) {
                Some(file) => read(request, file, faults),
                None => Answer::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
            },
            ("POST", None) if request.asked("uploads").is_some() => self.start(&request.path),
            ("PUT", Some(upload)) => self.part(request, &upload, body),
            ("POST", Some(upload)) => self.complete(&upload),
            ("DELETE", Some(upload)) => {
                self.uploads.remove(&upload);
                Answer::new(204, "")
            }
            ("PUT", None) => {
                if request.header("if-none-match") == Some("*") && self.files.contains_key(&request.path) {
                    return Answer::new(412, "");
                }
                self.put(&request.path, body);
                Answer::new(200, "").with("etag", format!("\"{}\"", self.versions))
            }
            _ => Answer::new(405, ""),
        }
    }

    fn start(&mut self, path: &str) -> Answer {
        self.versions += 1;
        let id = format!("upload-{}", self.versions);
        self.uploads.insert(id.clone(), Parts { path: path.to_owned(), ..Parts::default() });
        Answer::new(
            200,
            format!(
                "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            ),
        )
    }

    fn part(&mut self, request: &Request, upload: &str, body: &[u8]) -> Answer {
        let number = request.asked("partNumber").and_then(|number| number.parse().ok());
        match (self.uploads.get_mut(upload), number) {
            (Some(parts), Some(number)) => {
                parts.parts.insert(number, body.to_vec());
                Answer::new(200, "").with("etag", format!("\"part-{number}\""))
            }
            _ => Answer::new(404, "<Error><Code>NoSuchUpload</Code></Error>"),
        }
    }

    fn complete(&mut self, upload: &str) -> Answer {
        let Some(parts) = self.uploads.remove(upload) else {
            return Answer::new(404, "<Error><Code>NoSuchUpload</Code></Error>");
        };
        let bytes: Vec<u8> = parts.parts.into_values().flatten().collect();
        self.put(&parts.path, &bytes);
        let tag = self.versions;
        Answer::new(
            200,
            format!("<CompleteMultipartUploadResult><ETag>\"{tag}\"</ETag></CompleteMultipartUploadResult>"),
        )
    }
}

/// A file, or the range of it that was asked for.
fn read(request: &Request, file: &Stored, faults: &[Fault]) -> Answer {
    let has = |fault: &Fault| faults.contains(fault);
    let len = file.bytes.len() as u64;
    let tag = format!("{}\"{}\"", if has(&Fault::WeakTags) { "W/" } else { "" }, file.version);
    let wanted = request.header("if-match");
    if wanted.is_some_and(|wanted| wanted != tag) && !has(&Fault::NoConditions) {
        return Answer::new(412, "");
    }
    let versioned = |mut answer: Answer| {
        if !has(&Fault::NoVersion) && !has(&Fault::TimesOnly) {
            answer = answer.with("etag", tag.clone());
        }
        if !has(&Fault::NoVersion) {
            answer =
                answer.with("last-modified", format!("Sun, 06 Nov 1994 08:49:{:02} GMT", file.version % 60));
        }
        answer
    };
    match request.range.filter(|_| !has(&Fault::NoRanges)) {
        None => versioned(Answer::new(200, file.bytes.to_vec())),
        Some((first, _)) if first >= len => {
            Answer::new(416, "").with("content-range", format!("bytes */{len}"))
        }
        Some((first, end)) => {
            let end = end.min(len);
            // Another place of the same length, as far as there is one.
            let first = if has(&Fault::OtherRange) { first.saturating_sub(1) } else { first };
            let range = usize::try_from(first).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
            let said = format!("bytes {first}-{}/{len}", end - 1);
            versioned(Answer::new(206, &file.bytes[range]).with("content-range", said))
        }
    }
}
