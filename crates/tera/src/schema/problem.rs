//! Problems in definitions and maps, by kind.

use core::fmt;

use worldwire_core::{Diagnostic, Severity};

/// Which rule a text breaks. The names are stable; programs may match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A line that is not dashes, type and name; or a map line that is not name and code.
    MalformedLine,
    /// An unknown type, or a type that is not allowed there.
    UnknownType,
    /// A field name with characters other than letters, digits and underscores.
    BadName,
    /// A line is more than one level deeper than the one before it.
    DepthJump,
    /// A line is nested below one whose type cannot hold fields.
    ParentNotContainer,
    /// Two fields have the same name and cannot share it.
    NameClash,
    /// A field has no line for its count or offset, in a file with such lines.
    MissingMeta,
    /// A count, offset or ref line without a field.
    OrphanMeta,
    /// A flag on a type that does not allow it.
    FlagNotAllowed,
    /// An unknown flag.
    UnknownFlag,
    /// Interleaved arrays are separated by other fields.
    InterleavedNotAdjacent,
    /// A malformed or empty patch range.
    BadRange,
    /// An included file does not exist, includes itself, or exceeds the limit.
    BadInclude,
    /// A file name that ends in `.def` but is otherwise malformed.
    BadFileName,
    /// A construct from another dialect.
    WrongDialect,
    /// A layout too large for any message.
    TooLarge,
    /// A scalar field that occurs more than once; each copy takes up bytes.
    DuplicateField,
    /// White space other than space and tab inside a line.
    OddSpace,
    /// An undocumented platform.
    UnknownPlatform,
    /// A definition written as a program, which is not read.
    CodeDefinition,
    /// Two files with the same name, version and platform.
    DuplicateFile,
    /// A code that is not a decimal number.
    BadCode,
    /// A code too large for an opcode.
    CodeOutOfRange,
    /// A name occurs twice in a map; the last one wins.
    DuplicateName,
    /// A code occurs twice in a map; it maps to the last name.
    DuplicateCode,
    /// Malformed or unexpected JSON.
    BadJson,
    /// A file that is not text, or text in an unsupported encoding.
    NotText,
    /// A text that is not UTF-8 and is read as Latin-1.
    NotUtf8,
}

impl ProblemKind {
    /// The stable name: `unknown_type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MalformedLine => "malformed_line",
            Self::UnknownType => "unknown_type",
            Self::BadName => "bad_name",
            Self::DepthJump => "depth_jump",
            Self::ParentNotContainer => "parent_not_container",
            Self::NameClash => "name_clash",
            Self::MissingMeta => "missing_meta",
            Self::OrphanMeta => "orphan_meta",
            Self::FlagNotAllowed => "flag_not_allowed",
            Self::UnknownFlag => "unknown_flag",
            Self::InterleavedNotAdjacent => "interleaved_not_adjacent",
            Self::BadRange => "bad_range",
            Self::BadInclude => "bad_include",
            Self::BadFileName => "bad_file_name",
            Self::WrongDialect => "wrong_dialect",
            Self::TooLarge => "too_large",
            Self::DuplicateField => "duplicate_field",
            Self::OddSpace => "odd_space",
            Self::UnknownPlatform => "unknown_platform",
            Self::CodeDefinition => "code_definition",
            Self::DuplicateFile => "duplicate_file",
            Self::BadCode => "bad_code",
            Self::CodeOutOfRange => "code_out_of_range",
            Self::DuplicateName => "duplicate_name",
            Self::DuplicateCode => "duplicate_code",
            Self::BadJson => "bad_json",
            Self::NotText => "not_text",
            Self::NotUtf8 => "not_utf8",
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A problem in a text: the rule that was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The rule.
    pub kind: ProblemKind,
    /// Where it is, what is wrong, and what to do about it.
    pub diagnostic: Diagnostic,
}

impl Problem {
    /// Whether the text cannot be used as it is.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.diagnostic.severity() == Severity::Error
    }
}

/// `S_A.1.def:3:1: error: unknown type "uint" (did you mean uint32?) [unknown_type]`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.diagnostic, self.kind)
    }
}

impl core::error::Error for Problem {}
