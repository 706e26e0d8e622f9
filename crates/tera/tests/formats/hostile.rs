//! Messages crafted to need more work or memory than their length suggests.

use worldwire_core::json::Style;
use worldwire_core::testing::render;
use worldwire_core::{Error, ErrorKind, Reader, Side, Tree};
use worldwire_tera::message::typed::{Input, Output, Typed, word};
use worldwire_tera::message::{
    Fault, HeaderForm, Item, MAX_READINGS, RecordView, Tape, Value, View,
};
use worldwire_tera::rank::Ranking;
use worldwire_tera::schema::{Definition, Dialect, FileName, ParseOptions};

fn definition(text: &str) -> Definition {
    let options = ParseOptions { dialect: Some(Dialect::Toolbox), ..ParseOptions::default() };
    Definition::parse(&FileName::parse("S_A.1.def").unwrap(), text, &options).unwrap()
}

/// A message made of words, with its length prepended.
fn message(words: &[u16]) -> Vec<u8> {
    let length = u16::try_from(2 * words.len() + 2).unwrap();
    core::iter::once(&length).chain(words).flat_map(|word| word.to_le_bytes()).collect()
}

/// Reads a message in every way; returns the error that all agree on, and the tree's number of
/// nodes.
fn refused(definition: &Definition, data: &[u8]) -> (Error, usize) {
    let plan = definition.plan();
    let error = plan.check(data, HeaderForm::Plain).unwrap_err();
    assert_eq!(plan.read(data, HeaderForm::Plain).unwrap_err(), error);
    let mut tape = Tape::new();
    assert_eq!(plan.read_into(data, HeaderForm::Plain, &mut tape).unwrap_err(), error);
    assert!(tape.trailing().is_empty() && tape.notes().is_empty(), "the tape is empty");
    let mut reader = Reader::traced("message", data, Tree::new());
    let outcome = plan.decode(&mut reader, HeaderForm::Plain);
    let (tree, outcome) = reader.conclude(outcome);
    assert_eq!(outcome.unwrap_err().about("S_A.1"), error);
    render(&tree, Style::default());
    let mut ranking = Ranking::new([definition]);
    ranking.push(0, Side::Server, data);
    assert!(ranking.finish().is_empty());
    let walked = View::new(plan, data, HeaderForm::Plain);
    let walked = walked.and_then(|view| walk(view.fields(), &mut 0));
    assert_eq!(Fault::of(&walked.unwrap_err()), Fault::of(&error));
    (error, tree.len())
}

/// Views everything in place, up to the first error.
fn walk(view: RecordView<'_, '_, '_>, seen: &mut usize) -> Result<(), Error> {
    view.iter().try_for_each(|(_, item)| look(item?, seen))
}

fn look(item: Item<'_, '_, '_>, seen: &mut usize) -> Result<(), Error> {
    *seen += 1;
    assert!(*seen < 1 << 18, "endless");
    match item {
        Item::Record(view) => walk(view, seen),
        Item::List(list) => list.iter().try_for_each(|item| look(item?, seen)),
        _ => Ok(()),
    }
}

/// A text in an object is invalid: the object ends there, whatever surrounds it.
#[test]
fn an_object_ends_with_its_invalid_text() {
    let data = message(&[1, 0xffff, 5, 0]);
    let data = [&10_u16.to_le_bytes(), &data[2..]].concat();
    for text in [
        "object o\n- int32 a\n- string s\n",
        "object p\n- object o\n- - int32 a\n- - string s\n",
        "object o\n- int32 a\nobject p\n- string s\nobject o\n- byte b\n",
    ] {
        let (error, nodes) = refused(&definition(text), &data);
        assert!((1..=4).contains(&nodes), "{nodes} nodes: {error}");
    }
}

#[test]
fn an_element_that_links_to_itself_is_read_once() {
    let definition = definition("array l\n- int32 v\n- array m\n- - byte b\nstring s\n");
    let data = message(&[1, 0xffff, 10, 26, 10, 10, 0, 0, 0, 0, 0, 0, 0]);
    let (error, nodes) = refused(&definition, &data);
    assert_eq!(Fault::of(&error), Some(Fault::ArrayChainLong));
    assert_eq!(error.path_text(), "l[1]");
    assert!(nodes <= 4, "{nodes} nodes");
}

#[test]
fn longer_loops_end_too() {
    let definition = definition("array l\n- int16 v\n");
    for length in 2..40_u16 {
        let mut words = vec![1, 0xffff, 8];
        for index in 0..length {
            let at = 8 + 6 * index;
            let next = if index + 1 == length { 8 } else { at + 6 };
            words.extend([at, next, index]);
        }
        let (error, nodes) = refused(&definition, &message(&words));
        assert_eq!(Fault::of(&error), Some(Fault::ArrayChainLong));
        assert!(nodes <= 2 * 3 * usize::from(length), "{nodes} nodes for {length} elements");
    }
}

/// Nested lists, where all elements of a list share the same inner list.
#[test]
fn shared_lists_do_not_multiply() {
    let definition = definition("array a\n- array b\n- - array c\n- - - byte x\n");
    let each = 300_u16;
    let mut words = vec![1, each, 8];
    let inner = |level: u16| 8 + level * each * 8;
    for level in 0..2 {
        for index in 0..each {
            let at = inner(level) + 8 * index;
            words.extend([at, if index + 1 == each { 0 } else { at + 8 }, each, inner(level + 1)]);
        }
    }
    let mut data = message(&words);
    for index in 0..each {
        let at = inner(2) + 5 * index;
        data.extend(at.to_le_bytes());
        data.extend(if index + 1 == each { 0 } else { at + 5 }.to_le_bytes());
        data.push(7);
    }
    let length = u16::try_from(data.len()).unwrap();
    data[..2].copy_from_slice(&length.to_le_bytes());
    let (error, nodes) = refused(&definition, &data);
    assert_eq!(Fault::of(&error), Some(Fault::TooManyElements));
    assert!(matches!(error.kind(), ErrorKind::Limit { limit, .. }
        if limit == (MAX_READINGS * data.len()) as u64));
    assert!(nodes < MAX_READINGS * data.len(), "{nodes} nodes of {length} bytes");
}

/// The same with split objects, for which everything is read twice.
#[test]
fn shared_lists_do_not_multiply_with_split_objects() {
    let mut text = String::new();
    for dashes in ["", "-", "--"] {
        for line in ["object o", "-byte x", "byte m", "object o", "-byte y", "array l"] {
            text.push_str(&format!("{dashes}{line}\n"));
        }
    }
    text.push_str("---byte z\n");
    let definition = definition(&text);
    let (each, size) = (100_u16, 11);
    let start = |level: u16| size + level * each * size;
    let mut data = vec![0, 0, 1, 0];
    data.extend([each, start(0)].into_iter().flat_map(u16::to_le_bytes));
    data.extend([1, 2, 3]);
    for level in 0..3 {
        let size = if level < 2 { size } else { 5 };
        for index in 0..each {
            let at = start(level) + size * index;
            let next = if index + 1 == each { 0 } else { at + size };
            data.extend([at, next].into_iter().flat_map(u16::to_le_bytes));
            if level < 2 {
                data.extend([each, start(level + 1)].into_iter().flat_map(u16::to_le_bytes));
                data.extend([3, 4]);
            }
            data.push(5);
        }
    }
    let length = u16::try_from(data.len()).unwrap();
    data[..2].copy_from_slice(&length.to_le_bytes());
    let (error, nodes) = refused(&definition, &data);
    assert_eq!(Fault::of(&error), Some(Fault::TooManyElements), "{error}");
    assert!(nodes < 2 * MAX_READINGS * data.len(), "{nodes} nodes of {length} bytes");
}

/// Many short elements that share one long text.
#[test]
fn shared_texts_do_not_multiply() {
    let definition = definition("array<string> l\n");
    let each = 500_u16;
    let mut words = vec![1, each, 8];
    for index in 0..each {
        let at = 8 + 6 * index;
        words.extend([at, if index + 1 == each { 0 } else { at + 6 }, 8 + 6 * each]);
    }
    words.extend([u16::from(b'x'); 1000]);
    words.push(0);
    let (error, nodes) = refused(&definition, &message(&words));
    assert_eq!(Fault::of(&error), Some(Fault::TooManyElements));
    assert!(nodes < 20, "{nodes} nodes");
}

/// Sharing alone is not an error: some servers write all empty texts once.
#[test]
fn empty_texts_may_share_their_bytes() {
    let definition = definition("string a\nstring b\nstring c\nstring d\nstring e\n");
    let data = message(&[1, 14, 14, 14, 14, 14, 0]);
    assert!(definition.plan().check(&data, HeaderForm::Plain).is_ok());
}

/// Elements with many objects that take no bytes must not produce a large tree from few bytes.
#[test]
fn objects_without_bytes_count_as_work() {
    let mut text = String::from("array l\n");
    for index in 0..2_000 {
        text.push_str(&format!("- object o{index}\n"));
    }
    let definition = definition(&text);
    let each = 1_000_u16;
    let mut words = vec![1, each, 8];
    for index in 0..each {
        let at = 8 + 4 * index;
        words.extend([at, if index + 1 == each { 0 } else { at + 4 }]);
    }
    let (error, nodes) = refused(&definition, &message(&words));
    assert_eq!(Fault::of(&error), Some(Fault::TooManyElements), "{error}");
    assert!(nodes < 50_000, "{nodes} nodes");
}

/// `array l` of `int16 v`, as generated code would read it.
struct Listed;

impl<'d> Typed<'d> for Listed {
    const NAME: &'static str = "S_A";
    const VERSION: u32 = 1;
    const WORDS: usize = 4;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self, Error> {
        let fixed = input.scope::<4>(start, 8)?;
        let (count, offset) = (word(fixed, 0), word(fixed, 2));
        input.list(count, offset, start + 2, 6, |input, start| input.scope::<2>(start, 6))?;
        Ok(Self)
    }

    fn write(&self, _: &mut Output<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>, Error> {
        Ok(Value::Absent)
    }
}

#[test]
fn generated_code_has_the_same_bounds() {
    let endless = message(&[1, 0xffff, 8, 8, 14, 1, 14, 14, 2]);
    let error = Listed::decode(&endless, HeaderForm::Plain).map(|_| ()).unwrap_err();
    assert_eq!(refused(&definition("array l\n- int16 v\n"), &endless).0, error.inside("l"));
    // Overlapping elements: each begins with the second word of the one before.
    let each = 2_000_u16;
    let mut words = vec![1, each, 8];
    words.extend((0..=each).map(|index| 8 + 2 * index));
    words.extend([0, 0]);
    let data = message(&words);
    let error = Listed::decode(&data, HeaderForm::Plain).map(|_| ());
    let of_plan = definition("array l\n- int16 v\n").plan().check(&data, HeaderForm::Plain);
    assert_eq!(error.is_err(), of_plan.is_err());
}

#[test]
fn a_problem_in_every_line_is_cheap() {
    // Splitting the text into lines again for every problem would take minutes.
    let text = "string a\n".repeat(20_000);
    let file = FileName::parse("S_A.1.def").unwrap();
    let options = ParseOptions { dialect: Some(Dialect::Toolbox), ..ParseOptions::default() };
    let problems = Definition::parse(&file, &text, &options).unwrap_err();
    assert_eq!(problems.len(), 19_999);
    assert_eq!(problems.last().map(|last| last.diagnostic.line()), Some(20_000));
}
