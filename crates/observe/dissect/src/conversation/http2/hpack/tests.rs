//! The examples of RFC 7541, and hostile headers.

use super::*;

/// The bytes of an example, as the RFC writes them.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, Undecoded> {
    let mut fields = Vec::new();
    decoder.block(block, |name, value| {
        fields.push(format!(
            "{}: {}",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(value)
        ));
    })?;
    Ok(fields)
}

/// The table, the newest first, and its bytes.
fn table(decoder: &Decoder) -> (Vec<String>, usize) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        decoder
            .table
            .iter()
            .map(|field| format!("{}: {}", text(&field.name), text(&field.value)))
            .collect(),
        decoder.size,
    )
}

#[test]
fn numbers_of_appendix_c_1() {
    assert_eq!(integer(&mut &hex("0a")[..], 5), Ok(10));
    assert_eq!(integer(&mut &hex("1f9a0a")[..], 5), Ok(1337));
    assert_eq!(integer(&mut &hex("2a")[..], 8), Ok(42));
    assert_eq!(
        integer(&mut &hex("1f9a")[..], 5),
        Err(Malformed),
        "it is cut"
    );
    assert_eq!(
        integer(&mut &hex("1fffffffffffffffffff7f")[..], 5),
        Err(Malformed),
        "it is too large"
    );
}

#[test]
fn fields_of_appendix_c_2() {
    let mut decoder = Decoder::default();
    let indexed = hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572");
    assert_eq!(
        fields(&mut decoder, &indexed).unwrap(),
        ["custom-key: custom-header"]
    );
    assert_eq!(
        table(&decoder),
        (vec!["custom-key: custom-header".into()], 55)
    );

    let mut decoder = Decoder::default();
    let without = hex("040c 2f73 616d 706c 652f 7061 7468");
    assert_eq!(
        fields(&mut decoder, &without).unwrap(),
        [":path: /sample/path"]
    );
    let never = hex("1008 7061 7373 776f 7264 0673 6563 7265 74");
    assert_eq!(fields(&mut decoder, &never).unwrap(), ["password: secret"]);
    assert_eq!(fields(&mut decoder, &hex("82")).unwrap(), [":method: GET"]);
    assert_eq!(table(&decoder), (vec![], 0));
}

/// Three requests of one connection.
fn requests(blocks: [&str; 3]) {
    let mut decoder = Decoder::default();
    let first = fields(&mut decoder, &hex(blocks[0])).unwrap();
    assert_eq!(
        first,
        [
            ":method: GET",
            ":scheme: http",
            ":path: /",
            ":authority: www.example.com"
        ]
    );
    assert_eq!(
        table(&decoder),
        (vec![":authority: www.example.com".into()], 57)
    );

    let second = fields(&mut decoder, &hex(blocks[1])).unwrap();
    assert_eq!(second[..4], first[..]);
    assert_eq!(second[4..], ["cache-control: no-cache"]);
    let sent = ["cache-control: no-cache", ":authority: www.example.com"];
    assert_eq!(table(&decoder), (sent.map(String::from).to_vec(), 110));

    let third = fields(&mut decoder, &hex(blocks[2])).unwrap();
    assert_eq!(
        third,
        [
            ":method: GET",
            ":scheme: https",
            ":path: /index.html",
            ":authority: www.example.com",
            "custom-key: custom-value"
        ]
    );
    let sent = [
        "custom-key: custom-value",
        "cache-control: no-cache",
        ":authority: www.example.com",
    ];
    assert_eq!(table(&decoder), (sent.map(String::from).to_vec(), 164));
}

#[test]
fn requests_of_appendix_c_3() {
    requests([
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ]);
}

#[test]
fn requests_of_appendix_c_4_in_huffman_code() {
    requests([
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ]);
}

/// Three responses of one connection with a table of 256 bytes: the oldest fields leave it.
fn responses(blocks: [&str; 3]) {
    let mut decoder = Decoder {
        limit: 256,
        ..Decoder::default()
    };
    let first = fields(&mut decoder, &hex(blocks[0])).unwrap();
    let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
    assert_eq!(
        first,
        [
            ":status: 302",
            "cache-control: private",
            date,
            "location: https://www.example.com"
        ]
    );
    assert_eq!(decoder.size, 222);

    let second = fields(&mut decoder, &hex(blocks[1])).unwrap();
    assert_eq!(
        second,
        [":status: 307", first[1].as_str(), date, first[3].as_str()]
    );
    let sent = [":status: 307", first[3].as_str(), date, first[1].as_str()];
    assert_eq!(table(&decoder), (sent.map(String::from).to_vec(), 222));

    let third = fields(&mut decoder, &hex(blocks[2])).unwrap();
    let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let later = "date: Mon, 21 Oct 2013 20:13:22 GMT";
    assert_eq!(
        third,
        [
            ":status: 200",
            first[1].as_str(),
            later,
            first[3].as_str(),
            "content-encoding: gzip",
            cookie
        ]
    );
    assert_eq!(
        table(&decoder),
        (
            [cookie, "content-encoding: gzip", later]
                .map(String::from)
                .to_vec(),
            215
        )
    );
}

#[test]
fn responses_of_appendix_c_5() {
    responses([
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d
         546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f
         6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b
         2076 6572 7369 6f6e 3d31",
    ]);
}

#[test]
fn responses_of_appendix_c_6_in_huffman_code() {
    responses([
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7
         8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335
         dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ]);
}

#[test]
fn the_table_is_resized_and_bounded() {
    let mut decoder = Decoder::default();
    fields(&mut decoder, &hex("400161 0162 400163 0164")).unwrap();
    assert_eq!(table(&decoder), (vec!["c: d".into(), "a: b".into()], 68));
    // To 40 bytes: the oldest leaves. To nothing: all.
    assert_eq!(fields(&mut decoder, &hex("3f09 be")).unwrap(), ["c: d"]);
    assert_eq!(table(&decoder).1, 34);
    assert_eq!(fields(&mut decoder, &hex("20 be")), Err(Malformed));
    // To 65,536 bytes, and to one more.
    assert_eq!(fields(&mut decoder, &hex("3fe1ff03")), Ok(vec![]));
    assert_eq!(
        fields(&mut decoder, &hex("3fe2ff03")),
        Err(Undecoded::Table)
    );
}

#[test]
fn what_is_larger_than_the_table_empties_it_and_is_still_a_field() {
    let mut decoder = Decoder {
        limit: 40,
        ..Decoder::default()
    };
    fields(&mut decoder, &hex("400161 0162")).unwrap();
    assert_eq!(
        fields(&mut decoder, &hex("7e 09 313233343536373839")).unwrap(),
        ["a: 123456789"]
    );
    assert_eq!(table(&decoder), (vec![], 0));
}

#[test]
fn what_is_cut_or_refers_to_nothing_is_malformed() {
    for block in [
        "80",
        "be",
        "ff",
        "40",
        "400161",
        "40016101",
        "4001610262",
        "7e0161",
        "418cf1e3",
        "4181ff",
    ] {
        assert_eq!(
            fields(&mut Decoder::default(), &hex(block)),
            Err(Malformed),
            "{block}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_block_is_harmless(blocks in proptest::collection::vec(proptest::collection::vec(0_u8.., 0..200), 1..20)) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let _ = decoder.block(&block, |_, _| {});
            assert!(decoder.size <= decoder.limit && decoder.limit <= LARGEST_TABLE);
            assert_eq!(decoder.size, decoder.table.iter().map(HpackField::bytes).sum::<usize>());
        }
    }
}
