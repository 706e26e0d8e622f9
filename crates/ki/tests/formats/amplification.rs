//! Small inputs do not produce large outputs. Without the limits, each of these cases turns a few
//! kilobytes into hundreds of megabytes, or takes time quadratic in its length.

use worldwire_core::{ErrorKind, Limits, Reader};
use worldwire_ki::file::table::TableFile;
use worldwire_ki::file::xml;
use worldwire_ki::schema::classes::{Classes, TypeLists};
use worldwire_ki::{Dictionary, string_id};

fn text(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat()
}

/// A table with `BYT` columns of these names. Its records hold zeros and give this as their size.
fn table(name: &[u8], columns: &[&[u8]], records: u32, size: u16) -> Vec<u8> {
    let mut template = Vec::new();
    for column in columns {
        template.extend(text(column));
        template.extend([5, 0x28]);
    }
    template.extend(text(b"_TargetTable"));
    template.extend([9, 0x28]);
    template.extend(text(name));
    let whole = u16::try_from(template.len() + 4).unwrap().to_le_bytes();
    let mut bytes = [&records.to_le_bytes()[..], &[2, 1], &whole, &template].concat();
    for _ in 0..records {
        bytes.extend([2, 2]);
        bytes.extend(size.to_le_bytes());
        bytes.resize(bytes.len() + columns.len(), 0);
    }
    bytes
}

#[test]
fn warnings_about_tables_are_short() {
    let bytes = table(&[b'n'; 30_000], &[], 2_000, 9);
    let file = TableFile::decode(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(file.warnings().count(), 2_000);
    assert!(file.warnings().all(|warning| warning.len() < 200));
    let name = format!("{}...", "n".repeat(80));
    let wanted = format!("table {name}: record 0 states a wrong size, 9 bytes");
    assert_eq!(file.warnings().next(), Some(wanted));
    assert!(file.strict().unwrap_err().to_string().len() < 200);
    let short = table(b"Base", &[], 1, 9);
    let file = TableFile::decode(&mut Reader::new(&short)).unwrap();
    let wanted = "table Base: record 0 states a wrong size, 9 bytes";
    assert_eq!(file.warnings().collect::<Vec<_>>(), [wanted]);
}

#[test]
fn the_xml_of_a_table_is_bounded() {
    let bytes = table(b"T", &[&[b'n'; 30_000]], 2_000, 5);
    let file = TableFile::decode(&mut Reader::new(&bytes)).unwrap();
    let error = file.to_xml().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "text ratio", .. }), "{error}");
    let wide = Limits { text_ratio: 4_000, ..Limits::DEFAULT };
    assert!(file.to_xml_within(&wide).unwrap().len() > 2_000 * 2 * 30_000);
    // A table of bytes only, with names as long as the longest known ones.
    let names = [[b'm'; 40], [b'n'; 40]];
    let bytes = table(b"T", &[&names[0], &names[1]], 10_000, 6);
    let file = TableFile::decode(&mut Reader::new(&bytes)).unwrap();
    let written = file.to_xml().unwrap();
    assert_eq!(xml::load("t.xml", written.as_bytes()).file.unwrap(), file);
}

#[test]
fn missing_values_are_bounded() {
    let reported = |columns: &str, record: &str, count: usize| {
        let records = record.repeat(count);
        let text = format!("<T><A><RECORD>{columns}</RECORD>{records}</A></T>");
        let loaded = xml::load("a.xml", text.as_bytes());
        let errors = loaded.diagnostics.iter().map(ToString::to_string);
        (loaded.file, errors.filter(|reported| reported.contains("error")).collect::<Vec<_>>())
    };
    let columns: String = (0..1000).map(|at| format!("<C{at} TYPE=\"BYT\"/>")).collect();
    let (file, errors) = reported(&columns, "<RECORD/>", 5_000);
    assert!(file.is_none());
    assert!(errors[0].contains(
        "the records omit too many columns: more values are missing than the file has bytes"
    ));
    assert_eq!(errors.len(), 1);
    let (file, errors) = reported(&columns, "<RECORD/>", 5);
    assert_eq!(file.unwrap().tables[0].records.len(), 6, "{errors:?}");
    // A single value would fill every column that has its name.
    let (file, errors) =
        reported(&"<B TYPE=\"BYT\"/>".repeat(1000), "<RECORD><B/></RECORD>", 5_000);
    assert!(file.is_none());
    assert!(errors[0].contains("B occurs twice in a record"), "{}", errors[0]);
    assert!(errors.len() <= 201);
}

#[test]
fn long_lines_and_many_columns_take_linear_time() {
    let columns: String = (0..60_000).map(|at| format!("<C{at} TYPE=\"BYT\"/>")).collect();
    let loaded = xml::load("a.xml", format!("<T><A><RECORD>{columns}</RECORD></A></T>").as_bytes());
    assert_eq!(loaded.file.unwrap().tables[0].columns.len(), 60_000);
    // Each column without a type is an error, as is each repetition, and all of them are on the
    // same line.
    let columns = "<x/>".repeat(200_000);
    let loaded = xml::load("a.xml", format!("<T><A><RECORD>{columns}</RECORD></A></T>").as_bytes());
    assert_eq!(loaded.diagnostics.len(), 201);
    assert!(loaded.diagnostics[200].to_string().contains("399799 more diagnostics omitted"));
}

#[test]
fn words_with_the_same_id_are_bounded() {
    // Bytes that are 32 positions apart affect the same bits, so they can be swapped.
    let words: Vec<String> = (0..16_384_u32)
        .map(|number| {
            let mut word = vec![b'a'; 64];
            for bit in 0..14 {
                let at = if number >> bit & 1 == 1 { bit } else { bit + 32 };
                word[at] = b'b';
            }
            String::from_utf8(word).unwrap()
        })
        .collect();
    let id = string_id(words[0].as_bytes());
    assert!(words.iter().all(|word| string_id(word.as_bytes()) == id));
    let mut dictionary = Dictionary::default();
    words.iter().for_each(|word| dictionary.add(word));
    assert_eq!(dictionary.find(id), &words[..64]);
}

#[test]
fn notes_about_type_lists_are_short() {
    let long = "n".repeat(50_000);
    let property =
        |name: &str, id: u32| format!("\"{name}\":{{\"type\":\"int\",\"id\":{id},\"hash\":1}}");
    let others: Vec<_> = (0..2_000).map(|at| property(&format!("p{at}"), at)).collect();
    let properties = format!("{},{}", property(&long, 0), others.join(","));
    let json = format!("{{\"class A\":{{\"hash\":7,\"properties\":{{{properties}}}}}}}");
    let mut lists = TypeLists::new();
    lists.add("list.json", json.as_bytes()).unwrap();
    let classes = lists.compile();
    assert_eq!(classes.notes().len(), Classes::MAX_NOTES);
    assert!(classes.notes().iter().all(|note| note.text.len() < 500));
}
