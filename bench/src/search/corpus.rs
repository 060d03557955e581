//! Documents to index.

use std::path::Path;

use tercet_tatami::{File, Values};

/// A document.
#[derive(Debug)]
pub struct Page {
    pub id: String,
    pub url: String,
    pub title: String,
    pub body: String,
}

/// The first documents of a segment that stores them completely.
pub fn read(path: &Path, most: u64) -> Vec<Page> {
    let file = File::open(path).unwrap();
    let columns = file.read_columns(&[0, 1, 2, 3]).unwrap();
    let columns: Vec<_> = columns
        .iter()
        .map(|column| match &column.values {
            Values::Bytes(columns) => columns,
            other => panic!("{other:?}"),
        })
        .collect();
    let text = |column: usize, row: usize| String::from_utf8_lossy(columns[column].get(row)).into_owned();
    let rows = columns[0].len().min(usize::try_from(most).unwrap_or(usize::MAX));
    (0..rows)
        .map(|row| Page { id: text(0, row), url: text(1, row), title: text(2, row), body: text(3, row) })
        .collect()
}

/// Random numbers, the same in every run.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `end`, with a probability of one over the number.
    fn zipf(&mut self, end: usize) -> usize {
        (((end as f64 + 1.0).ln() * self.unit()).exp() as usize - 1).min(end - 1)
    }
}

/// A document of terms whose frequencies follow Zipf's law.
pub fn zipf(number: u64, random: &mut Random, most_words: usize, vocabulary: usize) -> Page {
    let words = 1 + random.below(most_words);
    let mut body = String::new();
    for _ in 0..words {
        let word = random.zipf(vocabulary);
        push_word(word, &mut body);
    }
    let mut title = String::new();
    for _ in 0..4 {
        push_word(random.zipf(vocabulary), &mut title);
    }
    Page { id: format!("doc-{number:08}"), url: format!("https://zipf.example/{number}"), title, body }
}

/// Terms look like words: frequent ones are short.
fn push_word(mut number: usize, out: &mut String) {
    const SYLLABLES: [&str; 16] = [
        "ka", "to", "ri", "mo", "ne", "lu", "sha", "qui", "dor", "vel", "fo", "pe", "zan", "bri", "ume",
        "ost",
    ];
    loop {
        out.push_str(SYLLABLES[number % 16]);
        number /= 16;
        if number == 0 {
            break;
        }
    }
    out.push(' ');
}
