//! Problems of definitions and maps, by kind.

use core::fmt;

use worldwire_core::{Diagnostic, Severity};

/// Which rule a text breaks. The names are stable; programs may match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A line that is not dashes, type and name, or a map line that is not name and code.
    MalformedLine,
    /// There is no such type, or it cannot stand there.
    UnknownType,
    /// A field name with other characters than letters, digits and underscores.
    BadName,
    /// A line is more than one level deeper than the one before it.
    DepthJump,
    /// A line is deeper than one whose type cannot hold fields.
    ParentNotContainer,
    /// Two fields have one name and cannot share it.
    NameClash,
    /// A field has no line for its count or offset, in a file with explicit ones.
    MissingMeta,
    /// A count, offset or ref line without a field.
    OrphanMeta,
    /// A flag on a type that takes none.
    FlagNotAllowed,
    /// There is no such flag.
    UnknownFlag,
    /// Interleaved arrays have something between them.
    InterleavedNotAdjacent,
    /// A patch range that is none.
    BadRange,
    /// A file that is included is not there, includes itself, or is one too many.
    BadInclude,
    /// A file name that ends in `.def` but is not of the right form.
    BadFileName,
    /// A construct of another dialect than the file's.
    WrongDialect,
    /// A layout that no message can have room for.
    TooLarge,
    /// A scalar field stands more than once; each copy takes up bytes.
    DuplicateField,
    /// White space other than space and tab inside the text.
    OddSpace,
    /// A platform nobody documented.
    UnknownPlatform,
    /// A definition written as a program, which is not read.
    CodeDefinition,
    /// Two files of the same name, version and platform.
    DuplicateFile,
    /// A code that is no decimal number.
    BadCode,
    /// A code larger than an opcode can be.
    CodeOutOfRange,
    /// A name stands twice in a map; the last one counts.
    DuplicateName,
    /// A code stands twice in a map; it stands for the last name.
    DuplicateCode,
    /// A text that is not the JSON it should be.
    BadJson,
    /// A file that is no text, or text of an encoding that is not read.
    NotText,
    /// A text that is no UTF-8, and is read as Latin-1.
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

/// One thing to be said about a text: what rule it is about, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The rule.
    pub kind: ProblemKind,
    /// Where, what, and what to do about it.
    pub diagnostic: Diagnostic,
}

impl Problem {
    /// Whether the text cannot be used as it stands.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.diagnostic.severity() == Severity::Error
    }
}

/// `S_A.1.def:3:1: error: there is no type "uint" (did you mean uint32?) [unknown_type]`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.diagnostic, self.kind)
    }
}

impl core::error::Error for Problem {}
