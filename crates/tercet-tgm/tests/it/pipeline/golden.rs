//! Reference messages encoded again: the same bytes wherever the format determines them.

use std::path::Path;

use serde_json::Value as Json;
use tercet_core::{ByteSource as _, Span};
use tercet_testkit::golden;
use tercet_tgm::{
    ByteOrder, EncodeOptions, File, GlobalMetadata, MaskMethod, Message, Object, Provenance, Value,
    encode_message,
};

fn files() -> Option<(std::path::PathBuf, Vec<Json>)> {
    let dir = golden("tgm")?;
    let text = std::fs::read_to_string(dir.join("manifest.json")).unwrap();
    let manifest: Json = serde_json::from_str(&text).unwrap();
    Some((dir, manifest["files"].as_array().unwrap().clone()))
}

/// The source values of an object: those stored next to it if it is lossy, else its decoded values.
fn values_of(dir: &Path, file: &Json, at: usize, object: &Object<'_>) -> Vec<u8> {
    let mut values = object.decode().unwrap().bytes().to_vec();
    let is_big = object.descriptor().stored_order() == ByteOrder::Big;
    if let Some(inputs) = file["inputs"].as_array() {
        // The last object before it of the same size.
        let fits = |input: &&Json| input["bytes"].as_u64() == Some(values.len() as u64);
        let input = inputs[..=at.min(inputs.len() - 1)].iter().rev().find(fits);
        if let Some(name) = input.and_then(|input| input["file"].as_str()) {
            let input = tercet_core::source::File::open(dir.join(name)).unwrap();
            return input.read_at(Span::first(input.len())).unwrap().to_vec();
        }
    }
    if is_big {
        values.chunks_exact_mut(object.descriptor().dtype.swap_unit()).for_each(<[u8]>::reverse);
    }
    values
}

fn options_for(masks: Option<&Value>) -> EncodeOptions {
    let mut options = EncodeOptions::new().with_provenance(Provenance::Off).with_allowed(true, true);
    let method =
        |kind: &str| -> Option<MaskMethod> { masks?.get(kind)?.get("method")?.as_text()?.parse().ok() };
    // An uncompressed mask was small, or requested.
    options.nan_mask = method("nan").unwrap_or_default();
    options.pos_inf_mask = method("inf+").unwrap_or_default();
    options.neg_inf_mask = method("inf-").unwrap_or_default();
    options
}

#[test]
fn encoders_reproduce_the_golden_bytes() {
    let Some((dir, files)) = files() else { return };
    let mut same = 0;
    for file in &files {
        let name = file["file"].as_str().unwrap();
        let opened = File::open(dir.join(name)).unwrap();
        for message in opened.messages().unwrap() {
            let message = message.unwrap();
            for object in message.objects() {
                let object = object.unwrap();
                let stored = object.descriptor();
                let blosc2_mask = name == "mask_blosc2.tgm";
                // The bytes of blosc2 depend on the version of the library; those of sz3 on how it tunes itself.
                if ["blosc2", "sz3"].contains(&&*stored.compression) || blosc2_mask {
                    continue;
                }
                if stored.encoding == "none" && stored.compression == "none" && stored.masks.is_none() {
                    continue;
                }
                let at = usize::try_from(object.index()).unwrap();
                let values = values_of(&dir, file, at, &object);
                let mut requested = stored.clone();
                requested.masks = None;
                requested.params.remove("szip_block_offsets");
                if !["sp_explicit.tgm", "mask_packed.tgm"].contains(&name) && stored.encoding != "none" {
                    requested.params.remove("sp_reference_value");
                    requested.params.remove("sp_binary_scale_factor");
                }
                let options = options_for(stored.masks.as_ref());
                let bytes = encode_message(&GlobalMetadata::default(), &[(&requested, &values)], &options)
                    .unwrap_or_else(|error| panic!("{name} {at}: {error}"));
                let ours = Message::from_bytes("ours", bytes).unwrap();
                let ours = ours.object(0).unwrap();
                assert_eq!(ours.descriptor(), stored, "{name} {at}");
                assert!(ours.stored().unwrap() == object.stored().unwrap(), "{name} {at}");
                same += 1;
            }
        }
    }
    assert!(same > 100, "{same}");
}
