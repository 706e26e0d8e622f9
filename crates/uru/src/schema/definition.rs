//! Descriptors as parsed from a text.

use core::fmt;

use super::types::{Type, fold};

/// One `STATEDESC`, as written in an SDL file.
///
/// `Display` writes the canonical text: one line per variable. Parsing it yields the same
/// definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub(super) name: Box<str>,
    pub(super) version: u16,
    pub(super) variables: Box<[Variable]>,
}

impl Definition {
    /// The name, as spelled in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version number.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// All variables, in file order.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
}

/// One `VAR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub(super) name: Box<str>,
    /// The name that distinguishes it from all other variables of the descriptor.
    pub(super) label: Box<str>,
    /// The label in the form used for comparisons.
    pub(super) folded: Box<str>,
    pub(super) kind: ElementType,
    pub(super) count: Option<u32>,
    pub(super) default: Option<Box<[Literal]>>,
    pub(super) default_options: Vec<Box<str>>,
    pub(super) display_options: Vec<Box<str>>,
    /// One element of the default, as encoded in a blob.
    pub(super) initial: Box<[u8]>,
}

impl Variable {
    pub(super) fn new(name: &str, kind: ElementType, count: Option<u32>) -> Self {
        Self {
            name: name.into(),
            label: name.into(),
            folded: fold(name),
            kind,
            count,
            default: None,
            default_options: Vec::new(),
            display_options: Vec::new(),
            initial: Box::default(),
        }
    }

    /// The name, as spelled in the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name used in blobs and states. Usually it is the variable's name, but some real
    /// descriptors use a name twice; the second variable is then labelled `name#2`.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The label as used for comparisons: in lower case.
    pub(crate) fn folded_label(&self) -> &str {
        &self.folded
    }

    /// Sets the label for the given occurrence of a repeated name.
    pub(super) fn number(&mut self, number: usize) {
        self.label = format!("{}#{number}", self.name).into();
        self.folded = fold(&self.label);
    }

    /// The type of its elements: simple, or another descriptor.
    #[must_use]
    pub fn element_type(&self) -> &ElementType {
        &self.kind
    }

    /// The simple type; `None` if the variable is nested.
    #[must_use]
    pub fn simple_type(&self) -> Option<Type> {
        match self.kind {
            ElementType::Simple(simple) => Some(simple),
            ElementType::Nested(_) => None,
        }
    }

    /// The number of elements; `None` for a list of any length, `[]` or `[0]`.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        self.count
    }

    /// The value after `DEFAULT=`: one literal, or a parenthesised list of them.
    #[must_use]
    pub fn default(&self) -> Option<&[Literal]> {
        self.default.as_deref()
    }

    /// The values after each `DEFAULTOPTION=`, which is `VAULT` in nearly all files.
    pub fn default_options(&self) -> impl Iterator<Item = &str> {
        self.default_options.iter().map(|option| &**option)
    }

    /// The values after each `DISPLAYOPTION=`, such as `hidden` or `red`.
    pub fn display_options(&self) -> impl Iterator<Item = &str> {
        self.display_options.iter().map(|option| &**option)
    }

    /// One element with the default value, as encoded in a blob. All elements of a new state start
    /// with it. Without a `DEFAULT` it is zero, an empty string or an invalid object; for a nested
    /// variable it is empty.
    ///
    /// Unverified: that clients start with zeros for a colour or a rotation without a `DEFAULT`.
    #[must_use]
    pub fn default_element(&self) -> &[u8] {
        &self.initial
    }
}

/// The type of a variable's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// Values of a simple type.
    Simple(Type),
    /// Records of the newest descriptor with this name: `$name`.
    Nested(Box<str>),
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(simple) => simple.fmt(f),
            Self::Nested(name) => write!(f, "${name}"),
        }
    }
}

/// A value as written in an SDL file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    pub(super) text: Box<str>,
    pub(super) quoted: bool,
}

impl Literal {
    /// The text, without quotation marks.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
