//! What a descriptor says.

use core::fmt;

use super::types::{Type, fold};

/// One `STATEDESC`, as it stands in a text.
///
/// Its `Display` is the canonical text: one line a variable, which parses to the same again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub(super) name: Box<str>,
    pub(super) version: u16,
    pub(super) variables: Box<[Variable]>,
}

impl Definition {
    /// The name in the spelling of the text.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// All variables, in the order of the text.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
}

/// One `VAR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub(super) name: Box<str>,
    /// The name that no other variable of the descriptor has.
    pub(super) label: Box<str>,
    /// The label as it is compared.
    pub(super) folded: Box<str>,
    pub(super) kind: ElementType,
    pub(super) count: Option<u32>,
    pub(super) default: Option<Box<[Literal]>>,
    pub(super) default_options: Vec<Box<str>>,
    pub(super) display_options: Vec<Box<str>>,
    /// One element of the default, as it stands in a blob.
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

    /// The name in the spelling of the text.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is called in blobs and states: its name. Some real descriptors have a name twice; the
    /// second one is then called `name#2`.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The label as names are compared: in lower case.
    pub(crate) fn folded_label(&self) -> &str {
        &self.folded
    }

    /// Makes the label that of another variable of the same name.
    pub(super) fn number(&mut self, number: usize) {
        self.label = format!("{}#{number}", self.name).into();
        self.folded = fold(&self.label);
    }

    /// The type, or the descriptor whose records it has.
    #[must_use]
    pub fn element_type(&self) -> &ElementType {
        &self.kind
    }

    /// The type, unless the variable is nested.
    #[must_use]
    pub fn simple_type(&self) -> Option<Type> {
        match self.kind {
            ElementType::Simple(simple) => Some(simple),
            ElementType::Nested(_) => None,
        }
    }

    /// How many elements it has; `None` for a list of any length, `[]` or `[0]`.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        self.count
    }

    /// What stands behind `DEFAULT=`: one value, or those of a list in parentheses.
    #[must_use]
    pub fn default(&self) -> Option<&[Literal]> {
        self.default.as_deref()
    }

    /// What stands behind each `DEFAULTOPTION=`: `VAULT` in nearly all files.
    pub fn default_options(&self) -> impl Iterator<Item = &str> {
        self.default_options.iter().map(|option| &**option)
    }

    /// What stands behind each `DISPLAYOPTION=`: `hidden`, `red`.
    pub fn display_options(&self) -> impl Iterator<Item = &str> {
        self.display_options.iter().map(|option| &**option)
    }

    /// One element with the default value, as it stands in a blob. All elements of a new state
    /// have it. Without a `DEFAULT` it is zero, empty, or an invalid object; empty for a nested
    /// variable.
    ///
    /// Unverified: that a client begins with zeros for a colour or a rotation without a `DEFAULT`.
    #[must_use]
    pub fn default_element(&self) -> &[u8] {
        &self.initial
    }
}

/// What the elements of a variable are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// Values of a type.
    Simple(Type),
    /// Records of the newest descriptor of this name: `$name`.
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

/// A value in a text.
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
