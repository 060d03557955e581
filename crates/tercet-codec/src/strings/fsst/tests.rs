use proptest::prelude::*;

use super::*;

fn encoded(symbols: &Symbols, strings: &[Vec<u8>]) -> (Vec<u32>, Vec<u8>) {
    let (mut lengths, mut coded) = (vec![77], vec![1, 2]);
    symbols.encode_all(strings.iter().map(Vec::as_slice), &mut lengths, &mut coded).unwrap();
    assert_eq!((lengths.remove(0), &coded[..2]), (77, &[1, 2][..]));
    (lengths, coded.split_off(2))
}

fn decoded(
    symbols: &Symbols,
    coded: &[u8],
    lengths: &[u32],
    total: usize,
) -> Result<Vec<Vec<u8>>, CodecError> {
    let (mut ends, mut raw) = (vec![5], vec![9; 6]);
    let result = symbols.decode_all(coded, lengths, total, &mut ends, &mut raw);
    if result.is_err() {
        assert_eq!((ends.len(), raw.len()), (1, 6), "an error changes nothing");
    }
    result?;
    assert_eq!(raw.len(), 6 + total);
    let mut start = 6;
    let cut = ends[1..].iter().map(|end| {
        let end = usize::try_from(*end).unwrap();
        raw[std::mem::replace(&mut start, end)..end].to_vec()
    });
    let strings = cut.collect();
    assert_eq!(start, raw.len());
    Ok(strings)
}

/// Reference decoder, code by code.
fn slow_decode(symbols: &[Vec<u8>], coded: &[u8]) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    let mut codes = coded.iter();
    while let Some(code) = codes.next() {
        match code {
            255 => raw.push(*codes.next()?),
            code => raw.extend_from_slice(symbols.get(usize::from(*code))?),
        }
    }
    Some(raw)
}

/// Reference encoder: the longest symbol by linear search.
fn slow_encode(symbols: &[Vec<u8>], mut string: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    while let Some(&byte) = string.first() {
        let fits = symbols.iter().enumerate().filter(|(_, symbol)| string.starts_with(symbol));
        if let Some((code, symbol)) = fits.max_by_key(|(code, symbol)| (symbol.len(), usize::MAX - code)) {
            coded.push(u8::try_from(code).unwrap());
            string = &string[symbol.len()..];
        } else {
            coded.extend([255, byte]);
            string = &string[1..];
        }
    }
    coded
}

/// Round trip through a table, all at once and each string alone.
fn check(symbols: &Symbols, strings: &[Vec<u8>]) -> usize {
    let (lengths, coded) = encoded(symbols, strings);
    let total = strings.iter().map(Vec::len).sum();
    assert!(decoded(symbols, &coded, &lengths, total).unwrap() == strings);
    let mut rest = &coded[..];
    for (string, len) in strings.iter().zip(lengths) {
        let (one, tail) = rest.split_at(len as usize);
        rest = tail;
        let mut raw = vec![3];
        symbols.decode_one(one, &mut raw).unwrap();
        assert!(raw[1..] == string[..]);
    }
    coded.len()
}

fn trained(strings: &[Vec<u8>]) -> Symbols {
    Symbols::train(strings.iter().map(Vec::as_slice))
}

fn urls(n: u32) -> Vec<Vec<u8>> {
    let hosts = ["www.example.org", "docs.example.com", "mirror.example.net"];
    let words = ["weather", "tensor", "index", "column", "search", "chunk"];
    let url = |i: u32| {
        let mixed = i.wrapping_mul(2_654_435_761) >> 7;
        let host = hosts[mixed as usize % hosts.len()];
        let word = words[(mixed >> 4) as usize % words.len()];
        format!("https://{host}/{word}/{}.html?page={}", mixed >> 9, mixed % 10).into_bytes()
    };
    (0..n).map(url).collect()
}

#[test]
fn a_page_has_known_bytes() {
    let symbols = Symbols::new(&["http://", "a", "ab"]).unwrap();
    assert_eq!(symbols.symbols().collect::<Vec<_>>(), [&b"http://"[..], b"a", b"ab"]);
    let strings = [b"http://ab".to_vec(), b"x".to_vec()];
    assert_eq!(encoded(&symbols, &strings), (vec![2, 2], vec![0x00, 0x02, 0xff, 0x78]));
    check(&symbols, &strings);
    // As stored in a page: the total, the stream of lengths, the codes.
    let mut page = vec![10, 3];
    let mut stream = Vec::new();
    crate::ints::encode(crate::ints::Scheme::BitpackFor, &[2u32, 2], &mut stream).unwrap();
    page.push(3);
    page.extend_from_slice(&stream);
    page.extend_from_slice(&[0, 2, 0xff, 0x78]);
    assert_eq!(page, [0x0a, 0x03, 0x03, 0x01, 0x02, 0x00, 0x00, 0x02, 0xff, 0x78]);
}

#[test]
fn tables_have_their_limits() {
    assert!(Symbols::new(&vec![b"ab"; 255]).is_ok());
    assert!(Symbols::new(&vec![b"ab"; 256]).unwrap_err().to_string().contains("256 symbols"));
    assert!(
        Symbols::new(&[&b"abcdefgh"[..], b"abcdefghi"])
            .unwrap_err()
            .to_string()
            .contains("9 bytes for code 1")
    );
    assert!(Symbols::new(&[&b""[..]]).unwrap_err().to_string().contains("0 bytes for code 0"));
    let none = Symbols::new::<&[u8]>(&[]).unwrap();
    assert_eq!(none.symbols().len(), 0);
    check(&none, &[b"abc".to_vec(), Vec::new(), vec![0, 255]]);
}

#[test]
fn symbols_with_zeros_are_symbols() {
    let symbols = Symbols::new(&[&b"\0"[..], b"\0\0", b"a\0", b"a\0\0\0\0\0\0\0", b"b\0c"]).unwrap();
    let strings: Vec<Vec<u8>> =
        [&b"a"[..], b"a\0", b"a\0\0", b"a\0\0\0\0\0\0\0\0", b"\0\0\0", b"", b"b\0", b"b\0c\0"]
            .map(<[u8]>::to_vec)
            .to_vec();
    check(&symbols, &strings);
    let table: Vec<Vec<u8>> = symbols.symbols().map(<[u8]>::to_vec).collect();
    for string in &strings {
        assert_eq!(encoded(&symbols, std::slice::from_ref(string)).1, slow_encode(&table, string));
    }
}

#[test]
fn repeated_strings_become_shorter() {
    let strings = urls(20_000);
    let symbols = trained(&strings);
    let total: usize = strings.iter().map(Vec::len).sum();
    let coded = check(&symbols, &strings);
    assert!(coded * 3 < total, "{coded} of {total}");
    let again: Vec<Vec<u8>> = trained(&strings).symbols().map(<[u8]>::to_vec).collect();
    assert!(symbols.symbols().eq(again), "trained twice");
}

#[test]
fn any_strings_can_be_trained_on() {
    let all_bytes: Vec<u8> = (0..=255).collect();
    let noise: Vec<u8> = (0..1u32 << 20).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    let sets: [Vec<Vec<u8>>; 8] = [
        vec![],
        vec![vec![]; 10],
        vec![all_bytes.clone(); 20],
        vec![vec![0; 1 << 20], vec![255; 1 << 20], vec![]],
        vec![noise.clone()],
        (0..5000u32).map(|i| i.to_le_bytes().to_vec()).collect(),
        vec![b"the same".to_vec(); 3000],
        vec![noise, all_bytes, Vec::new(), b"abcabcabc".repeat(1000)],
    ];
    for strings in sets {
        let symbols = trained(&strings);
        assert!(symbols.symbols().all(|symbol| (1..=8).contains(&symbol.len())));
        check(&symbols, &strings);
        check(&symbols, &urls(10));
    }
}

#[test]
fn invalid_pages_are_explained() {
    let symbols = Symbols::new(&["abc", "d"]).unwrap();
    let message = |coded: &[u8], lengths: &[u32], total| {
        decoded(&symbols, coded, lengths, total).unwrap_err().to_string()
    };
    assert_eq!(
        decoded(&symbols, &[0, 1, 255, 255], &[1, 3], 5).unwrap(),
        [b"abc".to_vec(), b"d\xff".to_vec()]
    );
    assert_eq!(message(&[0, 2], &[1, 1], 6), "fsst cannot decode: string 1: unknown code 2");
    assert_eq!(message(&[254], &[1], 1), "fsst cannot decode: string 0: unknown code 254");
    assert_eq!(
        message(&[0, 255, 1], &[2, 1], 5),
        "fsst cannot decode: string 0 ends with an incomplete escape"
    );
    assert_eq!(message(&[0, 1], &[1], 3), "fsst cannot decode: 1 strings take 1 codes, but there are 2");
    assert!(message(&[0], &[u32::MAX, u32::MAX], 3).contains("take 8589934590 codes"));
    assert_eq!(message(&[0], &[1], 9), "fsst cannot decode: 1 codes cannot be 9 bytes");
    assert_eq!(
        message(&[], &[], usize::MAX),
        format!("fsst cannot decode: 0 codes cannot be {} bytes", usize::MAX)
    );
    assert_eq!(message(&[0], &[1], 4), "fsst decodes to 3 bytes instead of 4");
    assert_eq!(message(&[0], &[1], 2), "fsst decodes to 3 bytes instead of 2");
    assert!(message(&[0; 20], &[10, 10], 5).contains("exceed the declared total"));
    let mut raw = vec![7];
    assert!(symbols.decode_one(&[0, 255], &mut raw).is_err());
    assert!(symbols.decode_one(&[0, 9], &mut raw).is_err());
    assert_eq!(raw, [7]);
}

fn strings() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![4 => 97u8..101, 1 => any::<u8>(), 1 => Just(0u8)];
    prop::collection::vec(prop::collection::vec(byte, 0..40), 0..40)
}

proptest! {
    #[test]
    fn round_trips(strings in strings()) {
        check(&trained(&strings), &strings);
    }

    #[test]
    fn any_table_agrees_with_the_slow_one(
        table in prop::collection::vec(prop::collection::vec(prop_oneof![97u8..100, Just(0u8)], 1..=8), 0..=255),
        strings in strings(),
    ) {
        let symbols = Symbols::new(&table).unwrap();
        check(&symbols, &strings);
        for string in &strings {
            let (_, coded) = encoded(&symbols, std::slice::from_ref(string));
            let slow = slow_encode(&table, string);
            prop_assert_eq!(coded.len(), slow.len());
            prop_assert_eq!(slow_decode(&table, &coded), Some(string.clone()));
        }
    }

    #[test]
    fn any_codes_are_strings_or_errors(
        table in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=8), 0..=255),
        coded in prop::collection::vec(any::<u8>(), 0..60),
        cuts in prop::collection::vec(0usize..60, 0..5),
        off in 0usize..3,
    ) {
        let symbols = Symbols::new(&table).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(coded.len())).chain([0, coded.len()]).collect();
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &coded[cut[0]..cut[1]]).collect();
        let lengths: Vec<u32> = parts.iter().map(|part| u32::try_from(part.len()).unwrap()).collect();
        let slow: Option<Vec<Vec<u8>>> = parts.iter().map(|part| slow_decode(&table, part)).collect();
        for part in &parts {
            let mut raw = Vec::new();
            let one = symbols.decode_one(part, &mut raw).ok().map(|()| raw);
            prop_assert_eq!(one, slow_decode(&table, part));
        }
        let total = slow.as_ref().map_or(20, |strings| strings.iter().map(Vec::len).sum());
        prop_assert_eq!(decoded(&symbols, &coded, &lengths, total).ok(), slow);
        prop_assert!(decoded(&symbols, &coded, &lengths, total + 1 + off).is_err());
        if let Some(less) = total.checked_sub(1 + off) {
            prop_assert!(decoded(&symbols, &coded, &lengths, less).is_err());
        }
    }
}
