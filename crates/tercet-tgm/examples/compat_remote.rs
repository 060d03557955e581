//! Remote files with the names of the format's documentation, from a web server on this machine.
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::collections::BTreeMap;

use tercet_testkit::server::Server;
use tercet_tgm::compat::{
    DataObjectDescriptor, DecodeOptions, Dtype, EncodeOptions, GlobalMetadata, RemoteScanOptions, Result,
    TensogramError, TensogramFile, encode, is_remote_url,
};

const MESSAGES: u8 = 9;

pub(crate) fn main() -> Result<()> {
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [72, 144]);
    let mut bytes = Vec::new();
    for step in 0..MESSAGES {
        let mut metadata = GlobalMetadata::default();
        metadata.extra.insert("step".to_string(), step.into());
        bytes.extend(encode(&metadata, &[(&descriptor, &[step; 72 * 144])], &EncodeOptions::default())?);
    }
    let server = Server::start();
    server.put("/forecast.tgm", &bytes);
    let url = server.url("/forecast.tgm");
    assert!(is_remote_url(&url) && !is_remote_url("forecast.tgm"));

    // Only the requested parts are read.
    let file = TensogramFile::open_source(&url)?;
    assert!(file.is_remote());
    assert_eq!((file.source(), file.message_count()?), (url.clone(), usize::from(MESSAGES)));
    let metadata = file.decode_metadata(4)?;
    assert_eq!(metadata.get("step").and_then(|step| step.as_i64()), Some(4));
    assert_eq!(file.decode_descriptors(0)?.1[0].shape, [72, 144]);
    let (_, _, values) = file.decode_object(3, 0, &DecodeOptions::default())?;
    assert_eq!(values, [3; 72 * 144]);
    let (_, parts) = file.decode_range(8, 0, &[(100, 3)], &DecodeOptions::default())?;
    assert_eq!(parts[0], [8, 8, 8]);
    println!("{} requests", server.requests().len());

    // The same part of all messages, with a few requests.
    server.clear_requests();
    let all: Vec<usize> = (0..usize::from(MESSAGES)).collect();
    let batch = file.decode_range_batch(&all, 0, &[(0, 2)], &DecodeOptions::default())?;
    assert!(batch.iter().zip(0..).all(|((_, parts), step)| parts[0] == [step; 2]));
    println!("{} requests for {} messages", server.requests().len(), batch.len());

    // From both ends at once, which is the default, or from the start.
    for bidirectional in [true, false] {
        let options = Some(RemoteScanOptions { bidirectional });
        let file = TensogramFile::open_remote(&url, &BTreeMap::new(), options)?;
        assert_eq!(file.message_count()?, usize::from(MESSAGES));
        assert_eq!(file.decode_message(8, &DecodeOptions::default())?.1[0].1, [8; 72 * 144]);
    }

    // A missing file is an error of I/O that names it.
    let missing = TensogramFile::open_source(server.url("/missing.tgm"));
    let missing = missing.and_then(|file| file.message_count());
    assert!(
        matches!(&missing, Err(TensogramError::Io(error)) if error.to_string().contains("missing.tgm")),
        "{missing:?}"
    );
    Ok(())
}
