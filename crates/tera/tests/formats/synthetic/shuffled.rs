//! A separate encoder that writes bodies and elements in any order, with gaps between them.

use worldwire_core::Sampler;
use worldwire_tera::message::Value;
use worldwire_tera::schema::Plan;
use worldwire_tera::schema::plan::{Field, FieldKind, Spot, TextPlace};
use worldwire_tera::types::Scalar;

/// Bytes after every fixed part, which may hold words that belong to no field.
const ROOM: usize = 24;

/// A message with a 4-byte header; `None` if the layout requires an order or space runs out.
pub(crate) fn shuffled(plan: &Plan, fields: &Value<'_>, sampler: &mut Sampler) -> Option<Vec<u8>> {
    let mut writer = Writer { plan, out: vec![0; 4], jobs: Vec::new(), lists: Vec::new() };
    writer.scope(plan.fields(), fields)?;
    while !writer.jobs.is_empty() {
        let pick = usize::try_from(sampler.below(writer.jobs.len() as u64)).unwrap();
        let job = writer.jobs.swap_remove(pick);
        let gap = usize::try_from(sampler.below(4)).unwrap();
        writer.out.extend_from_slice(&sampler.bytes(gap));
        writer.job(job)?;
    }
    for list in std::mem::take(&mut writer.lists) {
        let mut link = list.link;
        for place in &list.places {
            writer.word(link, *place)?;
            link = place + 2;
        }
    }
    writer.word(0, writer.out.len())?;
    Some(writer.out)
}

/// A list: where to write the offset of its first element, and where its elements are.
struct List {
    link: usize,
    places: Vec<usize>,
}

/// Something to be written at some position.
enum Job<'v, 'd> {
    /// A body, and where to write its offset.
    Body(usize, Vec<u8>),
    /// An element: its list, its index and its scope.
    Element(usize, usize, u32, &'v Value<'d>),
}

struct Writer<'v, 'd> {
    plan: &'v Plan,
    out: Vec<u8>,
    jobs: Vec<Job<'v, 'd>>,
    lists: Vec<List>,
}

impl<'v, 'd> Writer<'v, 'd> {
    fn word(&mut self, at: usize, word: usize) -> Option<()> {
        self.out[at..at + 2].copy_from_slice(&u16::try_from(word).ok()?.to_le_bytes());
        Some(())
    }

    fn job(&mut self, job: Job<'v, 'd>) -> Option<()> {
        let at = self.out.len();
        match job {
            Job::Body(link, bytes) => {
                self.word(link, at)?;
                self.out.extend_from_slice(&bytes);
            }
            Job::Element(list, index, scope, value) => {
                self.lists[list].places[index] = at;
                self.out.extend_from_slice(&[0; 4]);
                self.word(at, at)?;
                let (fields, single) = self.plan.element(scope);
                if single {
                    let values = Value::Record(vec![value.clone()]);
                    // The value must live as long as the test.
                    self.scope(fields, Box::leak(Box::new(values)))?;
                } else {
                    self.scope(fields, value)?;
                }
            }
        }
        Some(())
    }

    fn scope(&mut self, fields: &'v [Field], values: &'v Value<'d>) -> Option<()> {
        let start = self.out.len();
        let size = self.size(fields)?;
        self.out.resize(start + size + ROOM, 0);
        self.record(fields, values, start)
    }

    /// The size of the fixed part in bytes; `None` if there is more than one.
    fn size(&self, fields: &[Field]) -> Option<usize> {
        let end = |spot: &Spot, size: usize| {
            (spot.segment == 0).then_some(usize::from(spot.offset) + size)
        };
        let mut most = 0;
        for field in fields {
            let size = match field.kind() {
                FieldKind::Scalar { scalar, spot } => end(spot, scalar.size())?,
                FieldKind::Text { place: TextPlace::Offset(spot) } => end(spot, 2)?,
                FieldKind::Text { place: TextPlace::Here(_) } => return None,
                FieldKind::Bytes { offset, count } | FieldKind::Array { offset, count, .. } => {
                    end(offset, 2)?.max(end(count, 2)?)
                }
                FieldKind::Object(range) | FieldKind::Row(range) => {
                    self.size(self.plan.fields_of(range))?
                }
            };
            most = most.max(size);
        }
        Some(most)
    }

    fn record(&mut self, fields: &'v [Field], values: &'v Value<'d>, start: usize) -> Option<()> {
        let (Value::Record(values) | Value::List(values)) = values else { panic!("not a record") };
        for (field, value) in fields.iter().zip(values) {
            let at = |spot: &Spot| start + usize::from(spot.offset);
            match (field.kind(), value) {
                (FieldKind::Scalar { scalar, spot }, value) => {
                    let bytes = bytes_of(*scalar, value);
                    assert_eq!(bytes.len(), scalar.size());
                    self.out[at(spot)..at(spot) + bytes.len()].copy_from_slice(&bytes);
                }
                (FieldKind::Text { place: TextPlace::Offset(spot) }, Value::Text(text)) => {
                    let bytes = [text.as_bytes(), &[0, 0]].concat();
                    self.jobs.push(Job::Body(at(spot), bytes));
                }
                (FieldKind::Bytes { offset, count }, Value::Bytes(bytes)) => {
                    self.word(at(count), bytes.len())?;
                    self.jobs.push(Job::Body(at(offset), bytes.to_vec()));
                }
                (FieldKind::Array { count, offset, scope, .. }, Value::List(items)) => {
                    self.word(at(count), items.len())?;
                    let list = self.lists.len();
                    self.lists.push(List { link: at(offset), places: vec![0; items.len()] });
                    let items = items.iter().enumerate();
                    let jobs = items.map(|(index, item)| Job::Element(list, index, *scope, item));
                    self.jobs.extend(jobs);
                }
                (FieldKind::Object(range) | FieldKind::Row(range), value) => {
                    self.record(self.plan.fields_of(range), value, start)?;
                }
                (kind, value) => panic!("{value:?} for {kind:?}"),
            }
        }
        Some(())
    }
}

fn bytes_of(scalar: Scalar, value: &Value<'_>) -> Vec<u8> {
    match value {
        Value::Bool(value) => vec![u8::from(*value)],
        Value::Unsigned(value) | Value::Skill(value) => {
            value.to_le_bytes()[..scalar.size()].to_vec()
        }
        Value::Signed(value) => value.to_le_bytes()[..scalar.size()].to_vec(),
        Value::Float(value) => value.to_le_bytes().to_vec(),
        Value::Double(value) => value.to_le_bytes().to_vec(),
        Value::Angle(angle) => angle.0.to_le_bytes().to_vec(),
        Value::Vec3(numbers) | Value::Vec3fa(numbers) => {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        }
        Value::Customize(looks) => looks.to_vec(),
        other => panic!("{other:?} for {}", scalar.name()),
    }
}
