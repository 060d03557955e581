//! CSV and JSONL tables of one or several files.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::prelude::*;
use tercet_core::progress::Cancelled;
use tercet_core::{ByteSource, Progress, escape};
use tercet_tatami::{Field, Schema};

use super::build::ValueParser;
use super::cells::{CellParser, CsvColumn, CsvReader, header_names};
use super::chunks::{Boundary, CHUNK_LEN, Chunk, Chunks};
use super::decode::{self, Decoding};
use super::dialect::{CsvOptions, Dialect, SAMPLE_LEN};
use super::error::{Error, ErrorKind};
use super::format::{TableFormat, detect};
use super::infer::{Inference, Inferred, MAX_COLUMNS};
use super::json::Nested;
use super::lines::{JsonlReader, is_wanted, objects};
use super::parsed::{Batch, ParsedChunk, Problem};
use super::plain_json::Keys;
use super::reject::{OnError, Reject};

/// Maximum values of a batch of JSONL.
const BATCH_VALUES: usize = 1 << 20;
/// The length of the shortest JSON object with a line break.
const MIN_LINE: usize = 3;

/// Text format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// One JSON object per line.
    Jsonl,
    /// Values with a delimiter.
    Csv,
}

/// The rows from which types are inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// The first rows of each file.
    Rows(u64),
    /// All rows.
    All,
}

impl Default for Sample {
    fn default() -> Self {
        Self::Rows(20_000)
    }
}

/// Options of text tables.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TextOptions {
    /// What is known about CSV files.
    pub csv: CsvOptions,
    /// How nested objects of JSONL are read.
    pub nested: Nested,
    /// What to do with records that cannot be read.
    pub on_error: OnError,
    /// The rows from which types are inferred.
    pub sample: Sample,
    /// The columns to read; `None` for all.
    pub only: Option<Vec<String>>,
    /// The WHATWG name of the encoding; `None` for UTF-8, or for UTF-16 with a byte order mark.
    pub encoding: Option<String>,
}

impl TextOptions {
    /// Everything is detected, and the first error stops the reading.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what is known about CSV files.
    pub fn with_csv(mut self, csv: CsvOptions) -> Self {
        self.csv = csv;
        self
    }

    /// Sets how nested objects are read.
    pub fn with_nested(mut self, nested: Nested) -> Self {
        self.nested = nested;
        self
    }

    /// Sets what to do with records that cannot be read.
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets the rows from which types are inferred.
    pub fn with_sample(mut self, sample: Sample) -> Self {
        self.sample = sample;
        self
    }

    /// Sets the name of the encoding: `windows-1252`, `utf-16le`.
    pub fn with_encoding(mut self, name: Option<String>) -> Self {
        self.encoding = name;
        self
    }

    /// Sets the columns to read.
    pub fn with_only(mut self, only: Option<Vec<String>>) -> Self {
        self.only = only;
        self
    }
}

/// Declared columns of a table.
#[derive(Clone, Debug, Default)]
pub struct DeclaredColumns {
    /// The columns.
    pub fields: Vec<Field>,
    /// Logical type annotations, as pairs of footer metadata.
    pub annotations: Vec<(String, String)>,
}

/// A file of a table.
#[derive(Debug)]
struct Input {
    source: Arc<dyn ByteSource>,
    decoding: Decoding,
    /// The dialect and the column names of CSV.
    csv: Option<(Dialect, Vec<String>)>,
}

/// A CSV or JSONL table with a schema.
#[derive(Debug)]
pub struct TextTable {
    inputs: Vec<Input>,
    format: TextFormat,
    options: TextOptions,
    /// The names of declared columns, including those that are not read.
    declared: Option<Vec<String>>,
    columns: Inferred,
    /// Whether the types are inferred from a part of the rows.
    is_sampled: bool,
}

impl TextTable {
    /// Opens a table of one or several files. Without declared columns, they are inferred.
    ///
    /// If the types are inferred from a sample, [`read`](Self::read) fails with [`ErrorKind::OutsideSample`] at a value that
    /// does not fit; [`infer_all`](Self::infer_all) then infers the types again from all rows.
    pub fn open(
        sources: &[Arc<dyn ByteSource>],
        format: TextFormat,
        options: TextOptions,
        declared: Option<DeclaredColumns>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let names = declared.as_ref().map(|declared| names_of(&declared.fields));
        let mut inputs = Vec::new();
        for source in sources {
            inputs.push(Input::open(source, format, &options, names.as_deref())?);
        }
        let mut table = Self {
            inputs,
            format,
            options,
            declared: names,
            columns: Inferred::default(),
            is_sampled: false,
        };
        match declared {
            Some(DeclaredColumns { mut fields, annotations }) => {
                for input in &table.inputs {
                    input.check_names(&fields)?;
                }
                fields.retain(|field| is_wanted(table.options.only.as_deref(), &field.name));
                let (unknown, json) = (vec![false; fields.len()], vec![false; fields.len()]);
                table.columns = Inferred { fields, annotations, unknown, json };
            }
            None => table.infer(table.options.sample, progress)?,
        }
        Ok(table)
    }

    /// Infers the types again, from all rows.
    pub fn infer_all(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        self.infer(Sample::All, progress)
    }

    fn infer(&mut self, sample: Sample, progress: &dyn Progress) -> Result<(), Error> {
        let mut all = Inference::default();
        let mut is_partial = false;
        for input in &self.inputs {
            let reader = self.reader(input, None);
            let most = match sample {
                Sample::Rows(rows) => rows.max(1),
                Sample::All => u64::MAX,
            };
            let mut seen = 0;
            input.each_round(Self::boundary(input), sample, progress, |chunks| {
                let found: Vec<_> = chunks
                    .par_iter()
                    .map(|(chunk, is_first)| reader.infer(chunk, *is_first, most - seen))
                    .collect();
                for found in found {
                    let found =
                        found.map_err(|(line, problem)| problem.into_error(input.name(), line, false))?;
                    seen += found.rows();
                    all.merge(found);
                    all.check_limits().map_err(|reason| {
                        input.error(ErrorKind::TooLarge { line: 1, reason: reason.into() })
                    })?;
                }
                is_partial |= seen >= most;
                Ok(seen < most)
            })?;
        }
        let name = || self.inputs.first().map_or_else(|| "".into(), |input| Arc::clone(input.name()));
        if self.inputs.iter().all(|input| input.source.is_empty()) {
            return Err(Error::new(name(), ErrorKind::Empty));
        }
        if all.is_empty() && self.options.only.is_none() {
            return Err(Error::new(name(), ErrorKind::NoRows));
        }
        let all = match (self.format, self.options.on_error) {
            (TextFormat::Csv, _) => all.or_text(),
            (TextFormat::Jsonl, OnError::Stop) => all,
            (TextFormat::Jsonl, on_error) => all.or_first(on_error == OnError::Null),
        };
        let columns = all.finish();
        let mut columns =
            columns.map_err(|reason| Error::new(name(), ErrorKind::Inference(reason.into())))?;
        if is_partial {
            // Nulls may follow.
            columns.fields = columns.fields.into_iter().map(Field::with_nulls).collect();
        }
        self.is_sampled = is_partial;
        self.columns = columns;
        Ok(())
    }

    /// The columns to read. All are nullable if they are inferred from a sample.
    pub fn fields(&self) -> &[Field] {
        &self.columns.fields
    }

    /// The logical type annotations, as pairs of footer metadata.
    pub fn annotations(&self) -> &[(String, String)] {
        &self.columns.annotations
    }

    /// Whether the types are inferred from a part of the rows.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Whether the columns are declared.
    pub fn is_declared(&self) -> bool {
        self.declared.is_some()
    }

    /// The rows from which types are inferred.
    pub fn sample(&self) -> Sample {
        if self.is_sampled { self.options.sample } else { Sample::All }
    }

    /// The names of the files.
    pub fn input_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.inputs.iter().map(Input::name)
    }

    /// The names and dialects of CSV files.
    pub fn dialects(&self) -> impl Iterator<Item = (&Arc<str>, &Dialect)> {
        self.inputs.iter().filter_map(|input| Some((input.name(), &input.csv.as_ref()?.0)))
    }

    /// The total size of the files.
    pub fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.source.len()).sum()
    }

    /// All column names of the input. JSONL is read again for them.
    pub fn names(&self, progress: &dyn Progress) -> Result<Vec<String>, Error> {
        if let Some(declared) = &self.declared {
            return Ok(declared.clone());
        }
        let (mut names, mut seen) = (Vec::new(), HashSet::new());
        let mut note = |name: &str| {
            if !seen.contains(name) && names.len() < MAX_COLUMNS {
                seen.insert(name.to_owned());
                names.push(name.to_owned());
            }
        };
        for input in &self.inputs {
            if let Some((_, header)) = &input.csv {
                for name in header {
                    note(name);
                }
                continue;
            }
            let reader = self.reader(input, None);
            let Reader::Jsonl(reader) = reader else { continue };
            input.each_round(Boundary::Line, Sample::All, progress, |chunks| {
                for (chunk, _) in &chunks {
                    reader.names(chunk, &mut note);
                }
                Ok::<_, Error>(true)
            })?;
        }
        Ok(names)
    }

    /// Passes all rows to `each` in batches, and rejected records to `reject`. `schema` differs from
    /// [`fields`](Self::fields) in roles and storage only.
    pub fn read<E: From<Error> + Send>(
        &self,
        schema: &Schema,
        progress: &dyn Progress,
        reject: &mut dyn FnMut(Reject),
        mut each: impl FnMut(&Arc<str>, Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        for input in &self.inputs {
            let reader = self.reader(input, Some(schema));
            let is_sampled = self.is_sampled && self.options.on_error == OnError::Stop;
            let mut parse = |chunks: Vec<(Chunk, bool)>| {
                let parsed: Vec<ParsedChunk> =
                    chunks.into_par_iter().map(|(chunk, is_first)| reader.parse(&chunk, is_first)).collect();
                for ParsedChunk { batch, rejects, problem } in parsed {
                    rejects.into_iter().for_each(&mut *reject);
                    if let Some((line, problem)) = problem {
                        return Err(E::from(problem.into_error(input.name(), line, is_sampled)));
                    }
                    if !batch.is_empty() {
                        each(input.name(), batch)?;
                    }
                }
                Ok::<_, E>(true)
            };
            // A line of JSON can be short and still have a value in every column.
            let most_lines = match self.format {
                TextFormat::Jsonl => (BATCH_VALUES / schema.len().max(1)).max(1),
                TextFormat::Csv => usize::MAX,
            };
            input.each_round(Self::boundary(input), Sample::All, progress, |chunks| {
                if chunks.iter().all(|(chunk, _)| chunk.bytes.len() / MIN_LINE < most_lines) {
                    return parse(chunks);
                }
                let per_round = rayon::current_num_threads().max(1) * 2;
                let mut parts = chunks.into_iter().flat_map(|(chunk, _)| chunk.split(most_lines)).peekable();
                while parts.peek().is_some() {
                    parse(parts.by_ref().take(per_round).map(|part| (part, false)).collect())?;
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn boundary(input: &Input) -> Boundary {
        match &input.csv {
            Some((Dialect { delimiter, quote: Some(quote), comment, .. }, _)) => {
                Boundary::Quoted { delimiter: *delimiter, quote: *quote, comment: *comment }
            }
            _ => Boundary::Line,
        }
    }

    /// The parser of a file; for inference without a schema.
    fn reader<'a>(&'a self, input: &'a Input, schema: Option<&Schema>) -> Reader<'a> {
        let Inferred { fields, annotations, unknown, json } = &self.columns;
        let on_error = self.options.on_error;
        // Parsing depends on the type, not on the storage.
        let stored = schema.map_or(&[][..], Schema::fields);
        let declared = ValueParser::all(fields, annotations);
        if let Some((dialect, header)) = &input.csv {
            let positions: HashMap<&str, usize> = header.iter().map(String::as_str).zip(0..).collect();
            let columns = if schema.is_some() {
                let mut columns = Vec::new();
                for (index, (field, stored)) in fields.iter().zip(stored).enumerate() {
                    let parser = if self.declared.is_some() {
                        CellParser::declared(field, declared[index])
                    } else {
                        let is_unknown = unknown[index] && self.is_sampled;
                        CellParser::inferred(field, annotations, is_unknown)
                    };
                    let position = positions.get(&*field.name).copied();
                    columns.push(CsvColumn { field: stored.clone(), parser, position });
                }
                columns
            } else {
                let wanted = header.iter().zip(0..);
                let wanted = wanted.filter(|(name, _)| is_wanted(self.options.only.as_deref(), name));
                let column = |(name, position): (&String, usize)| CsvColumn {
                    field: Field::new(name.clone(), tercet_tatami::Type::String),
                    parser: CellParser::Text,
                    position: Some(position),
                };
                wanted.map(column).collect()
            };
            return Reader::Csv(CsvReader {
                input: input.name(),
                dialect,
                width: header.len(),
                columns,
                on_error,
            });
        }
        let parser = |index: usize| match declared[index] {
            _ if json[index] => ValueParser::Json,
            _ if unknown[index] && self.is_sampled => ValueParser::Unknown,
            parser if self.declared.is_none() => parser.of_inferred(),
            parser => parser,
        };
        let fields: Vec<(Field, ValueParser)> =
            stored.iter().enumerate().map(|(index, field)| (field.clone(), parser(index))).collect();
        let by_name =
            fields.iter().zip(0..).map(|((field, _), index)| (field.name.to_string(), index)).collect();
        let keys = Keys::new(fields.iter().map(|(field, _)| &*field.name));
        let objects = objects(fields.iter().map(|(field, _)| &*field.name));
        Reader::Jsonl(Box::new(OwnedJsonl {
            input: input.name(),
            nested: self.options.nested,
            only: self.options.only.as_deref(),
            fields,
            by_name,
            keys,
            objects,
            on_error,
        }))
    }
}

/// A parser of JSONL that owns its columns.
struct OwnedJsonl<'a> {
    input: &'a Arc<str>,
    nested: Nested,
    only: Option<&'a [String]>,
    fields: Vec<(Field, ValueParser)>,
    by_name: HashMap<String, usize>,
    keys: Keys,
    objects: HashSet<String>,
    on_error: OnError,
}

impl OwnedJsonl<'_> {
    fn names(&self, chunk: &Chunk, each: &mut impl FnMut(&str)) {
        self.borrowed().names(chunk, each);
    }

    fn borrowed(&self) -> JsonlReader<'_> {
        let Self { input, nested, only, fields, by_name, keys, objects, on_error } = self;
        JsonlReader {
            input,
            nested: *nested,
            only: *only,
            fields,
            by_name,
            keys,
            objects,
            on_error: *on_error,
        }
    }
}

/// The parser of a file.
enum Reader<'a> {
    Csv(CsvReader<'a>),
    Jsonl(Box<OwnedJsonl<'a>>),
}

impl Reader<'_> {
    fn parse(&self, chunk: &Chunk, is_first: bool) -> ParsedChunk {
        match self {
            Self::Csv(reader) => reader.parse(chunk, is_first),
            Self::Jsonl(reader) => reader.borrowed().parse(chunk),
        }
    }

    fn infer(&self, chunk: &Chunk, is_first: bool, most: u64) -> Result<Inference, (u64, Problem)> {
        match self {
            Self::Csv(reader) => reader.infer(chunk, is_first, most),
            Self::Jsonl(reader) => reader.borrowed().infer(chunk, most),
        }
    }
}

fn names_of(fields: &[Field]) -> Vec<String> {
    fields.iter().map(|field| field.name.to_string()).collect()
}

impl Input {
    fn open(
        source: &Arc<dyn ByteSource>,
        format: TextFormat,
        options: &TextOptions,
        declared: Option<&[String]>,
    ) -> Result<Self, Error> {
        let detected = detect(source)?;
        let encoding = match &options.encoding {
            Some(name) => Some(decode::by_name(name).ok_or_else(|| {
                let reason = format!("unknown encoding `{}`", escape::name(name)).into();
                Error::new(Arc::clone(source.name()), ErrorKind::Inputs(reason))
            })?),
            None => decode::by_mark(&detected.head),
        };
        let skip_lines = if format == TextFormat::Csv { options.csv.skip_lines } else { 0 };
        let decoding = Decoding { compression: detected.compression, encoding, skip_lines };
        let mut input = Self { source: Arc::clone(source), decoding, csv: None };
        if format == TextFormat::Jsonl {
            return Ok(input);
        }
        let (reader, _) = decode::text(Arc::clone(source), decoding)
            .map_err(|error| input.error(ErrorKind::Read(error)))?;
        let mut sample = Vec::new();
        let read = reader.take(SAMPLE_LEN as u64).read_to_end(&mut sample);
        read.map_err(|error| input.error(ErrorKind::Read(error)))?;
        let is_whole = sample.len() < SAMPLE_LEN;
        let is_tabs = TableFormat::for_name(source.name()) == Some(TableFormat::Tsv);
        let mut csv = options.csv.clone();
        // Declared columns have names: the first record of a file has them too, unless the caller knows better.
        csv.has_header = csv.has_header.or(declared.map(|_| true));
        let dialect = Dialect::detect(&sample, is_whole, is_tabs.then_some(b'\t'), &csv);
        drop(sample);
        let boundary = match dialect.quote {
            Some(quote) => Boundary::Quoted { delimiter: dialect.delimiter, quote, comment: dialect.comment },
            None => Boundary::Line,
        };
        // The first record may be long.
        let mut chunks = Chunks::new(Arc::clone(source), decoding, boundary)?.with_target(SAMPLE_LEN);
        let header = match chunks.next()? {
            Some(chunk) => header_names(&chunk, &dialect)
                .map_err(|(line, problem)| problem.into_error(input.name(), line, false))?,
            None => None,
        };
        let names = match (header, declared) {
            (Some(names), Some(declared)) if !dialect.has_header && names.len() == declared.len() => {
                declared.to_vec()
            }
            (Some(names), _) => names,
            (None, Some(declared)) => declared.to_vec(),
            (None, None) => Vec::new(),
        };
        input.csv = Some((dialect, names));
        Ok(input)
    }

    fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(self.name()), kind)
    }

    /// Compares the header with declared columns.
    fn check_names(&self, fields: &[Field]) -> Result<(), Error> {
        let Some((dialect, names)) = &self.csv else { return Ok(()) };
        let wrong =
            |name: &str, reason: &str| Problem::in_column(name, reason).into_error(self.name(), 1, false);
        if !dialect.has_header && names.len() != fields.len() && !names.is_empty() {
            let reason = format!("{} fields, expected {} columns", names.len(), fields.len());
            return Err(self.error(ErrorKind::Malformed { line: 1, reason: reason.into() }));
        }
        let known: HashSet<&str> = fields.iter().map(|field| &*field.name).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(name.as_str())) {
            return Err(wrong(name, "not in the schema"));
        }
        let given: HashSet<&str> = names.iter().map(String::as_str).collect();
        let missing = fields.iter().find(|field| !field.nullable && !given.contains(&*field.name));
        match missing {
            Some(field) => Err(wrong(&field.name, "non-nullable column is missing in the header")),
            None => Ok(()),
        }
    }

    /// Passes the chunks of the file to `each`, several at a time, until it returns false. They are read ahead on another
    /// thread.
    fn each_round<E: From<Error> + Send>(
        &self,
        boundary: Boundary,
        sample: Sample,
        progress: &dyn Progress,
        mut each: impl FnMut(Vec<(Chunk, bool)>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let per_round = rayon::current_num_threads().max(1) * 2;
        let mut chunks = Chunks::new(Arc::clone(&self.source), self.decoding, boundary)?;
        if sample != Sample::All {
            chunks = chunks.with_target(SAMPLE_LEN);
        }
        let mut is_first = true;
        let mut next_round = |more: &mut dyn FnMut() -> Result<Option<Chunk>, Error>| {
            let (mut round, mut bytes) = (Vec::new(), 0);
            while let Some(chunk) = more()? {
                progress.advance(chunk.read);
                bytes += chunk.bytes.len();
                round.push((chunk, std::mem::take(&mut is_first)));
                // Long records are parsed one by one.
                if round.len() >= per_round || bytes >= per_round * CHUNK_LEN * 2 || sample != Sample::All {
                    break;
                }
            }
            if progress.is_cancelled() {
                return Err(self.error(ErrorKind::Cancelled(Cancelled)));
            }
            Ok(round)
        };
        // A sample is read without a thread.
        if sample != Sample::All || self.source.len() < CHUNK_LEN as u64 {
            loop {
                let round = next_round(&mut || chunks.next())?;
                if round.is_empty() || !each(round)? {
                    return Ok(());
                }
            }
        }
        let (sender, receiver) = sync_channel::<Result<Chunk, Error>>(per_round);
        let started = std::thread::scope(|scope| {
            let chunks = &mut chunks;
            let ahead = move || {
                loop {
                    let chunk = match chunks.next() {
                        Ok(Some(chunk)) => Ok(chunk),
                        Ok(None) => return,
                        Err(error) => Err(error),
                    };
                    let is_error = chunk.is_err();
                    // The receiver is gone after an error of the consumer.
                    if sender.send(chunk).is_err() || is_error {
                        return;
                    }
                }
            };
            if std::thread::Builder::new().spawn_scoped(scope, ahead).is_err() {
                return Ok(false);
            }
            // Dropped at the end, which ends the thread.
            let receiver: Receiver<Result<Chunk, Error>> = receiver;
            loop {
                let round = next_round(&mut || receiver.recv().ok().transpose())?;
                if round.is_empty() || !each(round)? {
                    return Ok::<_, E>(true);
                }
            }
        })?;
        // The system starts no more threads.
        if started {
            return Ok(());
        }
        loop {
            let round = next_round(&mut || chunks.next())?;
            if round.is_empty() || !each(round)? {
                return Ok(());
            }
        }
    }
}
