//! The formats have one shape: the same program, compiled for each of them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use tercet::core::progress::NoProgress;
use tercet::core::source::{Access, Memory};
use tercet::core::{ByteSource, Class, Diagnostic, Hint, Limits, Location};

use crate::files::files;

/// Everything that the table "One shape for three formats" of ARCHITECTURE.md names, with the names of one format.
macro_rules! same_program {
    ($name:ident, $format:ident, $position:expr, $read:expr) => {
        #[test]
        fn $name() {
            use tercet::$format::{
                Error, ErrorKind, File, OutlineOptions, ReadOptions, Report, SalvageOptions, SalvageReport,
                Summary, VerifyOptions, Writer, WriterOptions, Written, salvage, verify,
            };

            let directory = tempfile::tempdir().unwrap();
            let path: &Path = &files(directory.path())[$position].1;
            let bytes = std::fs::read(path).unwrap();
            let source = |bytes: &[u8]| -> Arc<dyn ByteSource> { Arc::new(Memory::new("a", bytes.to_vec())) };

            // Open: by path or location, with options, from a source, from bytes.
            let options: ReadOptions = ReadOptions::new()
                .with_verify(true)
                .with_limits(Limits::default())
                .with_access(Access::Pread)
                .with_threads(NonZeroUsize::new(1));
            let opened: [Result<File, Error>; 5] = [
                File::open(path),
                File::open(Location::from(path)),
                File::open_with(path, options),
                File::from_source(source(&bytes), ReadOptions::default()),
                File::from_bytes("a", bytes.clone()),
            ];

            // Describe: the summary and the byte layout; `Serialize` and the same for all sources.
            let described = opened.map(|file| {
                let file: File = file.unwrap().clone();
                assert_eq!(file.len(), bytes.len() as u64);
                assert!(!file.name().is_empty());
                let summary: Summary = file.summary().unwrap();
                let mut summary = serde_json::to_value(&summary).unwrap();
                let name = file.name().to_string();
                summary.as_object_mut().unwrap().retain(|_, value| *value != name.as_str());
                let outline = file.outline(OutlineOptions::new().with_max_rows(None)).unwrap();
                assert!(!outline.parts.is_empty());
                (summary, serde_json::to_value(&outline.parts).unwrap())
            });
            assert!(described.windows(2).all(|pair| pair[0] == pair[1]));

            // Verify: a valid file, and one with a changed byte.
            let verify_options = VerifyOptions::new().with_deep(true).with_limits(Limits::default());
            let report: Report = verify(source(&bytes), verify_options, &NoProgress).unwrap();
            assert!(report.ok && report.file_len == bytes.len() as u64 && report.failures().count() == 0);
            let mut bad = bytes.clone();
            let last = bad.len() - 1;
            bad[last] ^= 0x10;
            let report: Report = verify(source(&bad), VerifyOptions::default(), &NoProgress).unwrap();
            assert!(!report.ok);
            for finding in report.failures() {
                assert!(!finding.code.is_empty() && finding.message.is_some(), "{finding:?}");
            }

            // Salvage, into any sink.
            let sink = std::io::Cursor::new(Vec::new());
            let report: SalvageReport<Vec<u8>> =
                salvage(source(&bytes), sink, SalvageOptions::new(), &NoProgress).unwrap();
            assert!(report.is_complete());
            let again = verify(source(&report.output), VerifyOptions::new(), &NoProgress).unwrap();
            assert!(again.ok);

            // Errors: a location and a kind, with a class; hints are values and name no flags.
            let missing: Error =
                File::open(directory.path().join("missing")).and_then(|file| file.summary()).err().unwrap();
            assert!(missing.is_not_found());
            assert!(matches!(missing.kind(), ErrorKind::Common(_)), "{missing:?}");
            assert_eq!(missing.class(), Class::Io);
            assert!(missing.location().ends_with("missing"));
            let read: fn(&File) -> Result<(), Error> = $read;
            let cut = bytes[..bytes.len() - 3].to_vec();
            let malformed: Error = File::from_bytes("cut", cut).and_then(|file| read(&file)).err().unwrap();
            assert_eq!(malformed.location(), "cut");
            assert!(matches!(malformed.class(), Class::Malformed | Class::Corrupt), "{malformed}");
            assert!(malformed.span().is_some(), "{malformed}");
            let hint: Option<Hint> = malformed.hint();
            assert!(!hint.is_some_and(|hint| hint.to_string().contains("--")));

            // The names of the writer. Its arguments are those of the format.
            let _ = WriterOptions::new();
            let _ = |written: Written<()>| written.bytes;
            let _ = |writer: Writer<std::io::Cursor<Vec<u8>>>| writer.finish().map(|done| done.output);
        }
    };
}

same_program!(tet_has_the_shape, tet, 0, |file| file.outline(OutlineOptions::new()).map(drop));
same_program!(tgm_has_the_shape, tgm, 1, |file| file.message(1).map(drop));
same_program!(tatami_has_the_shape, tatami, 2, |file| file.outline(OutlineOptions::new()).map(drop));
