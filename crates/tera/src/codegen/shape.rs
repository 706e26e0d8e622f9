//! The structs that a definition becomes, and the types of their fields.

use core::ops::Range;
use std::collections::HashMap;

use worldwire_core::codegen::{Taken, camel, snake};

use crate::schema::Plan;
use crate::schema::plan::FieldKind;
use crate::types::Scalar;

/// Maximum number of values in a row for it to become an array; longer arrays have no `Default`.
const MAX_ARRAY: usize = 32;

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Scalar(Scalar),
    Text,
    Bytes,
    /// A struct, by its index.
    Record(usize),
    /// The element type, and the elements' scope.
    List(Box<Self>, u32),
    Row(Box<Self>, usize),
}

impl Shape {
    /// Whether it is `Copy`.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Scalar(_))
    }

    /// Whether it is a row with too many values for an array.
    pub(super) fn is_long_row(&self) -> bool {
        matches!(self, Self::Row(_, count) if *count > MAX_ARRAY)
    }

    /// Whether it becomes a `Vec`.
    pub(super) fn is_vec(&self) -> bool {
        matches!(self, Self::List(..)) || self.is_long_row()
    }

    /// The type's name in definitions.
    pub(super) fn wire_type(&self) -> String {
        match self {
            Self::Scalar(scalar) => scalar.name().to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Record(_) => "object".to_owned(),
            Self::List(inner, _) => match &**inner {
                Self::Record(_) => "array".to_owned(),
                inner => format!("array<{}>", inner.wire_type()),
            },
            Self::Row(..) => {
                let (mut inner, mut counts) = (self, String::new());
                while let Self::Row(element, count) = inner {
                    counts.push_str(&format!("[{count}]"));
                    inner = element;
                }
                format!("{}{counts}", inner.wire_type())
            }
        }
    }
}

/// A field of a struct.
#[derive(Debug)]
pub(super) struct StructField {
    pub(super) name: String,
    /// Its index in the plan.
    pub(super) index: u32,
    pub(super) shape: Shape,
    /// For an earlier copy: the field that holds the last one.
    pub(super) last: Option<String>,
}

/// A struct.
#[derive(Debug, Default)]
pub(super) struct Struct {
    pub(super) name: String,
    /// Its path in the message.
    pub(super) path: String,
    /// The scope whose fields it has; `None` for an object, which is part of a scope.
    pub(super) scope: Option<u32>,
    pub(super) fields: Vec<StructField>,
    /// Whether it contains text or bytes.
    pub(super) borrows: bool,
}

/// All structs of a definition.
pub(super) struct Shapes<'p> {
    pub(super) plan: &'p Plan,
    /// The message itself comes first.
    pub(super) structs: Vec<Struct>,
    /// For each named field's index: its name, and the name of its last copy.
    pub(super) named: HashMap<u32, (String, Option<String>)>,
    shapes: HashMap<u32, Shape>,
}

impl<'p> Shapes<'p> {
    pub(super) fn of(name: &str, version: u32, plan: &'p Plan, taken: &mut Taken) -> Self {
        let (named, shapes) = (HashMap::new(), HashMap::new());
        let mut all = Self { plan, structs: Vec::new(), named, shapes };
        let name = taken.fresh(format!("{}V{version}", camel(name, "Type")));
        let fields = plan.scope(plan.root).fields.clone();
        all.record(name, "", Some(plan.root), fields, taken);
        all
    }

    /// Adds a struct for some fields; returns its index.
    fn record(
        &mut self,
        name: String,
        path: &str,
        scope: Option<u32>,
        range: Range<u32>,
        taken: &mut Taken,
    ) -> usize {
        let index = self.structs.len();
        self.structs.push(Struct::default());
        let plan = self.plan;
        let fields = plan.fields_of(&range);
        let mut own = Taken::default();
        let names: Vec<String> =
            fields.iter().map(|field| own.fresh(snake(field.name(), "field"))).collect();
        let mut built = Vec::with_capacity(fields.len());
        for ((index, field), field_name) in range.zip(fields).zip(&names) {
            let type_name = format!("{name}{}", camel(field.name(), "Type"));
            let path = match path {
                "" => field.name().to_owned(),
                path => format!("{path}.{}", field.name()),
            };
            let shape = self.shape(index, &type_name, &path, taken);
            // The last copy is in the same record, but may have another type.
            let last = field.twin().map(|twin| plan.field(twin));
            let last = last.filter(|last| match (field.kind(), last.kind()) {
                (FieldKind::Scalar { scalar, .. }, FieldKind::Scalar { scalar: last, .. }) => {
                    scalar == last
                }
                _ => false,
            });
            let last = last.and_then(|last| names.get(last.slot as usize).cloned());
            self.named.insert(index, (field_name.clone(), last.clone()));
            built.push(StructField { name: field_name.clone(), index, shape, last });
        }
        let borrows = built.iter().any(|field| self.borrows(&field.shape));
        self.structs[index] = Struct { name, path: path.to_owned(), scope, fields: built, borrows };
        index
    }

    fn shape(&mut self, index: u32, name: &str, path: &str, taken: &mut Taken) -> Shape {
        let shape = match self.plan.field(index).kind().clone() {
            FieldKind::Scalar { scalar, .. } => Shape::Scalar(scalar),
            FieldKind::Text { .. } => Shape::Text,
            FieldKind::Bytes { .. } => Shape::Bytes,
            FieldKind::Object(range) => {
                Shape::Record(self.record(taken.fresh(name.to_owned()), path, None, range, taken))
            }
            FieldKind::Row(range) => {
                // All values of a row have the same type, and there is at least one.
                Shape::Row(Box::new(self.shape(range.start, name, path, taken)), range.len())
            }
            FieldKind::Array { scope, .. } => {
                let element = self.plan.scope(scope);
                let (single, fields) = (element.single, element.fields.clone());
                let inner = if single {
                    self.shape(fields.start, name, path, taken)
                } else {
                    let name = taken.fresh(name.to_owned());
                    Shape::Record(self.record(name, path, Some(scope), fields, taken))
                };
                Shape::List(Box::new(inner), scope)
            }
        };
        self.shapes.insert(index, shape.clone());
        shape
    }

    /// The shape of a field, by its index.
    pub(super) fn shape_of(&self, index: u32) -> &Shape {
        self.shapes.get(&index).unwrap_or(&Shape::Bytes)
    }

    /// The shape of a list's elements, by the index of its field.
    pub(super) fn element_of(&self, index: u32) -> Option<&Shape> {
        match self.shape_of(index) {
            Shape::List(element, _) => Some(element),
            _ => None,
        }
    }

    fn borrows(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Scalar(_) => false,
            Shape::Text | Shape::Bytes => true,
            Shape::Record(index) => self.structs[*index].borrows,
            Shape::List(inner, _) | Shape::Row(inner, _) => self.borrows(inner),
        }
    }

    /// The lifetime parameter of a struct, to follow its name.
    pub(super) fn lifetime(&self, index: usize) -> &'static str {
        if self.structs[index].borrows { "<'d>" } else { "" }
    }

    pub(super) fn rust_type(&self, shape: &Shape) -> String {
        match shape {
            Shape::Scalar(scalar) => scalar_type(*scalar).to_owned(),
            Shape::Text => "Text<'d>".to_owned(),
            Shape::Bytes => "Cow<'d, [u8]>".to_owned(),
            Shape::Record(index) => {
                format!("{}{}", self.structs[*index].name, self.lifetime(*index))
            }
            Shape::Row(inner, count) if *count <= MAX_ARRAY => {
                format!("[{}; {count}]", self.rust_type(inner))
            }
            Shape::List(inner, _) | Shape::Row(inner, _) => {
                format!("Vec<{}>", self.rust_type(inner))
            }
        }
    }
}

/// The Rust type of a fixed-size type.
pub(super) fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::Byte => "u8",
        Scalar::Int16 => "i16",
        Scalar::Uint16 => "u16",
        Scalar::Int32 => "i32",
        Scalar::Uint32 => "u32",
        Scalar::Int64 => "i64",
        Scalar::Uint64 => "u64",
        Scalar::Float => "f32",
        Scalar::Double => "f64",
        Scalar::Angle => "Angle",
        Scalar::Vec3 | Scalar::Vec3fa => "[f32; 3]",
        Scalar::SkillId | Scalar::SkillId32 => "Skill",
        Scalar::Customize => "[u8; 8]",
    }
}
