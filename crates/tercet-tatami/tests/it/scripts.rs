//! Twenty corpora in eleven scripts: every ranking and form of query finds what a scorer without an index finds, bit for bit.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use tercet_core::source::Memory;
use tercet_tatami::search::{
    Analyzer, AnalyzerChoice, Cluster, Document, FieldValue, Query, Ranking, SearchOptions, Segment,
    SegmentBuilder, SegmentOptions, score,
};
use tercet_tatami::{Field, File, ReadOptions, Scalar, Type};

/// A name, an analyzer and words.
const CORPORA: [(&str, &str, &str); 20] = [
    ("latin", "plain", "river stone Kite amber lantern Quick orbit velvet"),
    ("latin", "english", "running stones kites ambers lanterns quickly orbital velvety"),
    ("latin", "german", "Häuser Straße Flüsse größer Mühlen Vögel schöner Bäume"),
    ("latin", "french", "rivières été forêts garçons œuvres châteaux élèves naïve"),
    ("latin", "turkish", "kitaplar ışıklar çiçekler şehirler ağaçlar gözler güneşi yıldız"),
    ("latin", "standard", "café naïve façade Ångström jalapeño crème déjà piñata"),
    ("cyrillic", "russian", "книги города реки звёзды деревья машины улицы окна"),
    ("cyrillic", "standard", "Київ їжак ґрунт єдність річка місто дерево вікно"),
    ("greek", "greek", "βιβλία ποτάμια ΣΊΣΥΦΟΣ θάλασσα αστέρια δέντρα πόλεις παράθυρα"),
    ("greek", "plain", "λόγος μύθος ήλιος ουρανός γη φως νερό αέρας"),
    ("arabic", "arabic", "كِتَاب مدينة نهر نجوم شجرة سيارة شارع نافذة"),
    ("hebrew", "standard", "סֵפֶר עיר נהר כוכב עץ מכונית רחוב חלון"),
    ("devanagari", "hindi", "किताब शहर नदी तारा पेड़ गाड़ी सड़क खिड़की"),
    ("devanagari", "plain", "जल अग्नि वायु धरती आकाश सूर्य चंद्र वन"),
    ("thai", "standard", "หนังสือ เมือง แม่น้ำ ดาว ต้นไม้ รถยนต์ ถนน หน้าต่าง"),
    ("han", "standard", "書籍 城市 河流 星星 樹木 汽車 街道 窗戶"),
    ("kana", "standard", "ほんだな まち カワ ホシゾラ きぎ クルマ みち まどべ"),
    ("hangul", "standard", "책상 도시는 강물 별빛 나무 자동차 거리에서 창문"),
    ("armenian", "standard", "գիրք քաղաք գետ աստղ ծառ մեքենա փողոց պատուհան"),
    ("georgian", "plain", "წიგნი ქალაქი მდინარე ვარსკვლავი ხე მანქანა ქუჩა ფანჯარა"),
];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// The fields of a document.
#[derive(Default)]
struct Page {
    url: String,
    title: String,
    body: String,
    anchor: String,
}

fn pages(words: &[&str], random: &mut Random, count: usize) -> Vec<Page> {
    let mut text = |most: usize| {
        let mut out = String::new();
        for _ in 0..random.below(most + 1) {
            // Frequent and rare words.
            let among = 1 + random.below(words.len());
            out.push_str(words[random.below(among)]);
            out.push_str([" ", ", ", "\n", "! "][random.below(4)]);
        }
        out
    };
    (0..count)
        .map(|number| Page { url: format!("u/{number:04}"), title: text(3), body: text(40), anchor: text(2) })
        .collect()
}

fn built(pages: &[Page], analyzer: Analyzer, positions: bool) -> Segment {
    let options = SegmentOptions::new()
        .with_analyzer(AnalyzerChoice::Fixed(analyzer))
        .with_positions(positions)
        .with_fields(vec![Field::new("count", Type::Int64)])
        .with_memory_bytes(1 << 16);
    let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), options).unwrap();
    for page in pages {
        let document = Document::new(&page.url, &page.title)
            .with_id(&page.url)
            .with_body(page.body.as_bytes())
            .with_anchor(page.anchor.as_bytes());
        let number: i64 = page.url[2..].parse().unwrap();
        let values = [FieldValue::Scalar(Scalar::Int64(number % 50))];
        let document = document.with_values(&values);
        builder.add(&document).unwrap();
    }
    let bytes = builder.finish().unwrap().written.output;
    let file = File::from_source(Arc::new(Memory::new("segment", bytes)), ReadOptions::new()).unwrap();
    file.segment().unwrap().unwrap()
}

/// Scores documents one by one.
struct Scorer {
    /// The terms of body, title, anchor text and URL.
    documents: Vec<[Vec<String>; 4]>,
    lengths: Vec<u32>,
    average: f64,
    /// The entries of each document with their frequencies.
    entries: Vec<BTreeMap<String, u32>>,
    /// Documents and occurrences of each entry of the dictionary.
    found: BTreeMap<String, (u64, u64)>,
}

impl Scorer {
    fn new(pages: &[Page], analyzer: Analyzer) -> Self {
        let terms = |text: &str| analyzer.terms(text.as_bytes());
        let documents: Vec<[Vec<String>; 4]> = pages
            .iter()
            .map(|page| [terms(&page.body), terms(&page.title), terms(&page.anchor), terms(&page.url)])
            .collect();
        let lengths: Vec<u32> =
            documents.iter().map(|fields| fields.iter().map(|field| field.len() as u32).sum()).collect();
        let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
        let entries: Vec<BTreeMap<String, u32>> = documents.iter().map(entries).collect();
        let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (entry, frequency) in entries.iter().flatten() {
            let known = found.entry(entry.clone()).or_default();
            known.0 += 1;
            known.1 += u64::from(*frequency);
        }
        Self { average: total as f64 / pages.len() as f64, documents, lengths, entries, found }
    }

    fn score(&self, ranking: Ranking, document: usize, entry: &str, boost: f32) -> Option<f32> {
        self.score_as(ranking, document, entry, entry, boost)
    }

    /// The score of an entry with the weight of another one.
    fn score_as(
        &self,
        ranking: Ranking,
        document: usize,
        entry: &str,
        weight_of: &str,
        boost: f32,
    ) -> Option<f32> {
        let frequency = *self.entries[document].get(entry)?;
        let (found, occurrences) = self.found[weight_of];
        let idf = score::idf(self.documents.len() as u64, found);
        let length = f64::from(self.lengths[document]);
        let bm25 = |k1: f32, b: f32| {
            let factor = k1 * (1.0 - b + b * (length / self.average) as f32);
            frequency as f32 * (k1 + 1.0) / (frequency as f32 + factor)
        };
        Some(match ranking {
            Ranking::Native => score::term(idf * boost, frequency),
            Ranking::Bm25 => idf * boost * bm25(1.2, 0.75),
            Ranking::Relevance => idf * (occurrences as f64 / found as f64) as f32 * boost * bm25(0.9, 0.4),
        })
    }

    /// The terms, without entries of fields.
    fn terms(&self) -> impl Iterator<Item = &str> {
        self.found.keys().map(String::as_str).filter(|entry| !entry.contains(':'))
    }

    /// Whether one term follows another one with at most some terms in between.
    fn is_near(&self, document: usize, one: &str, other: &str, slop: usize) -> bool {
        let [body, title, _, url] = &self.documents[document];
        let near = |field: &Vec<String>| {
            let follows = |at: usize| field[at + 1..].iter().take(slop + 1).any(|term| term == other);
            (0..field.len()).any(|at| field[at] == one && follows(at))
        };
        [body, title, url].into_iter().any(near)
    }

    fn has_phrase(&self, document: usize, one: &str, other: &str) -> bool {
        let [body, title, _, url] = &self.documents[document];
        let follows = |field: &Vec<String>| field.windows(2).any(|two| two[0] == one && two[1] == other);
        [body, title, url].into_iter().any(follows)
    }
}

/// The entries of a document with their frequencies.
fn entries(fields: &[Vec<String>; 4]) -> BTreeMap<String, u32> {
    let mut out = BTreeMap::new();
    for (field, name) in fields.iter().zip(["", "title:", "anchor:", "url:"]) {
        for term in field {
            *out.entry(term.clone()).or_insert(0) += 1;
            if !name.is_empty() {
                *out.entry(format!("{name}{term}")).or_insert(0) += 1;
            }
        }
    }
    out
}

/// What a query of three words asks for, by the scores of a document.
type Form<'a> = (String, Box<dyn Fn(usize) -> Option<f32> + 'a>);

/// Prefixes and fuzzy words: several terms of the dictionary.
fn dictionary_forms<'a>(
    scorer: &'a Scorer,
    ranking: Ranking,
    b: &str,
    analyzer: Analyzer,
    terms: &'a [String; 3],
) -> Vec<Form<'a>> {
    let mut out: Vec<Form<'a>> = Vec::new();
    let second = move |document: usize| scorer.score(ranking, document, &terms[1], 1.0);
    // The terms of a prefix are scored in their order.
    let prefix: String = terms[0].chars().take(2).collect();
    if is_single(&prefix, analyzer)
        && !analyzer.is_stemming()
        && Query::parse(&format!("{prefix}*")).unwrap().has_prefix()
    {
        let found: Vec<String> =
            scorer.terms().filter(|term| term.starts_with(&prefix)).map(str::to_owned).collect();
        out.push((
            format!("{prefix}* {b}"),
            Box::new(move |document| {
                let mut scores: Vec<Option<f32>> =
                    found.iter().map(|term| scorer.score(ranking, document, term, 1.0)).collect();
                scores.push(second(document));
                sum(&scores)
            }),
        ));
    }
    // Those of a fuzzy word count by their similarity, with the weight of the most frequent one.
    let letters = terms[0].chars().count();
    if letters > 2 && !analyzer.is_stemming() {
        let mut typed: Vec<char> = terms[0].chars().collect();
        typed.remove(letters / 2);
        let typed: String = typed.into_iter().collect();
        if is_single(&typed, analyzer) && analyzer.terms(typed.as_bytes()) == [typed.as_str()] {
            let word: Vec<char> = typed.chars().collect();
            let similar: Vec<(String, usize)> = scorer
                .terms()
                .map(|term| (term.to_owned(), edits(&word, term)))
                .filter(|(_, edits)| *edits <= 1)
                .collect();
            let most = similar.iter().rev().max_by_key(|(term, _)| scorer.found[term].0);
            let most = most.map(|(term, _)| term.clone()).unwrap_or_default();
            out.push((
                format!("{typed}~1"),
                Box::new(move |document| {
                    let scores: Vec<Option<f32>> = similar
                        .iter()
                        .map(|(term, edits)| {
                            let letters = term.chars().count().max(word.len());
                            let boost = 1.0 - *edits as f32 / (letters + 1) as f32;
                            scorer.score_as(ranking, document, term, &most, boost)
                        })
                        .collect();
                    sum(&scores)
                }),
            ));
        }
    }
    out
}

/// The sum of the scores of the terms that a document has.
fn sum(scores: &[Option<f32>]) -> Option<f32> {
    let present: Vec<f32> = scores.iter().flatten().copied().collect();
    (!present.is_empty()).then(|| present.iter().fold(0.0, |sum, score| sum + score))
}

fn forms<'a>(
    scorer: &'a Scorer,
    ranking: Ranking,
    words: [&str; 3],
    analyzer: Analyzer,
    terms: &'a [String; 3],
) -> Vec<Form<'a>> {
    let [a, b, c] = words;
    let has_fields = analyzer != Analyzer::PLAIN;
    let one =
        move |document: usize, at: usize, boost: f32| scorer.score(ranking, document, &terms[at], boost);
    let both = move |document: usize| Some((one(document, 0, 1.0)?, one(document, 1, 1.0)?));
    let mut out: Vec<Form<'a>> = vec![
        (a.to_owned(), Box::new(move |document| one(document, 0, 1.0))),
        (
            format!("{a} {b} {c}"),
            Box::new(move |document| {
                sum(&[one(document, 0, 1.0), one(document, 1, 1.0), one(document, 2, 1.0)])
            }),
        ),
        (
            format!("+{a} {b}"),
            Box::new(move |document| {
                let first = one(document, 0, 1.0)?;
                sum(&[Some(first), one(document, 1, 1.0)])
            }),
        ),
        (
            format!("{a} -{b}"),
            Box::new(move |document| one(document, 0, 1.0).filter(|_| one(document, 1, 1.0).is_none())),
        ),
        (format!("{a} AND {b}"), Box::new(move |document| both(document).map(|(one, other)| one + other))),
        (
            format!("{a}^2 {b}^0.5"),
            Box::new(move |document| sum(&[one(document, 0, 2.0), one(document, 1, 0.5)])),
        ),
        (
            format!("\"{a} {b}\""),
            Box::new(move |document| {
                let (first, second) = both(document)?;
                scorer.has_phrase(document, &terms[0], &terms[1]).then_some(first + second)
            }),
        ),
        (format!("-{a}"), Box::new(move |document| one(document, 0, 1.0).is_none().then_some(0.0))),
        ("*".to_owned(), Box::new(|_| Some(0.0))),
    ];
    out.push((
        format!("{a} OR ({b} AND {c})"),
        Box::new(move |document| {
            let first = one(document, 0, 1.0);
            match one(document, 1, 1.0).zip(one(document, 2, 1.0)) {
                Some((second, third)) => Some(first.unwrap_or(0.0) + second + third),
                None => first,
            }
        }),
    ));
    for slop in [1, 3] {
        out.push((
            format!("\"{a} {b}\"~{slop}"),
            Box::new(move |document| {
                let (first, second) = both(document)?;
                scorer.is_near(document, &terms[0], &terms[1], slop).then_some(first + second)
            }),
        ));
    }
    out.push((
        format!("+{a} +count:[10 TO 30]"),
        Box::new(move |document| one(document, 0, 1.0).filter(|_| (10..=30).contains(&(document % 50)))),
    ));
    out.extend(dictionary_forms(scorer, ranking, b, analyzer, terms));
    if has_fields {
        out.push((
            format!("title:{a} {b}"),
            Box::new(move |document| {
                let entry = format!("title:{}", terms[0]);
                sum(&[scorer.score(ranking, document, &entry, 1.0), one(document, 1, 1.0)])
            }),
        ));
        out.push((
            format!("body:{a} {b}"),
            Box::new(move |document| {
                let in_body = scorer.documents[document][0].contains(&terms[0]);
                sum(&[one(document, 0, 1.0).filter(|_| in_body), one(document, 1, 1.0)])
            }),
        ));
    }
    out
}

#[test]
fn every_script_is_searched_exactly() {
    let (mut checked, mut hits) = (0, 0);
    for (number, (script, name, words)) in CORPORA.into_iter().enumerate() {
        let mut random = Random(77 + number as u64);
        let analyzer: Analyzer = name.parse().unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        // Words of one term that starts no bigram and is no stop word: those of scripts without spaces have several.
        let single: Vec<&str> = words.iter().copied().filter(|word| is_single(word, analyzer)).collect();
        let pages = pages(&words, &mut random, 150);
        let scorer = Scorer::new(&pages, analyzer);
        for positions in [false, true] {
            let segment = built(&pages, analyzer, positions);
            let parts = [built(&pages[..60], analyzer, positions), built(&pages[60..], analyzer, !positions)];
            for ranking in [Ranking::Native, Ranking::Bm25, Ranking::Relevance] {
                for _ in 0..4 {
                    let three = if single.len() >= 3 {
                        [(); 3].map(|()| single[random.below(single.len())])
                    } else {
                        // Pairs of letters are terms of scripts without spaces.
                        [(); 3].map(|()| bigram(words[random.below(words.len())], analyzer))
                    };
                    let terms = three.map(|word| analyzer.terms(word.as_bytes()).pop().unwrap());
                    // A query counts a repeated term once per ranking; the native one counts all.
                    if terms[0] == terms[1] || terms[1] == terms[2] || terms[0] == terms[2] {
                        continue;
                    }
                    for (query, score) in forms(&scorer, ranking, three, analyzer, &terms) {
                        let mut expected: Vec<(u32, f32)> = (0..pages.len())
                            .filter_map(|document| Some((document as u32, score(document)?)))
                            .collect();
                        expected.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
                        expected.truncate(10);
                        let bits = |hits: &[(u32, f32)]| -> Vec<(u32, u32)> {
                            hits.iter().map(|(document, score)| (*document, score.to_bits())).collect()
                        };
                        let parsed = Query::parse(&query).unwrap();
                        let options = SearchOptions::new(10).with_ranking(ranking);
                        let found = segment.find(&parsed, &options).unwrap().hits;
                        let found: Vec<(u32, f32)> =
                            found.iter().map(|hit| (hit.document, hit.score)).collect();
                        assert_eq!(bits(&found), bits(&expected), "{script} {name} {ranking:?} {query}");
                        // As one of several segments.
                        let (several, _) = Cluster::new(&parts).find(&parsed, &options, None).unwrap();
                        let several: Vec<(u32, f32)> = several
                            .iter()
                            .map(|hit| (hit.document + if hit.segment == 0 { 0 } else { 60 }, hit.score))
                            .collect();
                        assert_eq!(
                            bits(&several),
                            bits(&expected),
                            "{script} {name} {ranking:?} {query}, in two"
                        );
                        checked += 1;
                        hits += found.len();
                    }
                }
            }
        }
    }
    assert!(checked > 2000 && hits > 5 * checked, "{checked} queries, {hits} hits");
}

/// The number of letters that are inserted, deleted, replaced, or swapped with the next one.
fn edits(word: &[char], other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut table = vec![vec![0; other.len() + 1]; word.len() + 1];
    for i in 0..=word.len() {
        for j in 0..=other.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(word[i - 1] != other[j - 1]);
                let least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let is_swap = i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1];
                if is_swap { least.min(table[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    table[word.len()][other.len()]
}

/// The start of a word that is one term.
fn bigram(word: &str, analyzer: Analyzer) -> &str {
    let ends = word.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let is_one = |end: &usize| is_single(&word[..*end], analyzer);
    ends.rev().find(is_one).map_or(word, |end| &word[..end])
}

/// Whether a word is one term, which is in the index as it is, and no stop word.
fn is_single(word: &str, analyzer: Analyzer) -> bool {
    let terms = analyzer.terms(word.as_bytes());
    // Stop words are skipped next to other words.
    let found = Query::parse(&format!("{word} {word}xx")).unwrap().scored_terms(analyzer);
    terms.len() == 1 && found.first() == terms.first()
}
