//! Problems in definitions and maps, by kind.

use core::fmt;

use worldwire_core::{Diagnostic, Severity};

use crate::named::named;

named! {
    /// The rule that the text breaks. The names are stable; programs may match on them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum ProblemKind {
        /// A line that is not dashes, type and name; or a map line that is not name and code.
        MalformedLine = "malformed_line",
        /// An unknown type, or a type that is not allowed there.
        UnknownType = "unknown_type",
        /// A field name with characters other than letters, digits and underscores.
        BadName = "bad_name",
        /// A line is more than one level deeper than the one before it.
        DepthJump = "depth_jump",
        /// A line is nested below one whose type cannot hold fields.
        ParentNotContainer = "parent_not_container",
        /// Two fields have the same name and cannot share it.
        NameClash = "name_clash",
        /// A field has no line for its count or offset, in a file with such lines.
        MissingMeta = "missing_meta",
        /// A count, offset or ref line without a field.
        OrphanMeta = "orphan_meta",
        /// A flag on a type that does not allow it.
        FlagNotAllowed = "flag_not_allowed",
        /// An unknown flag.
        UnknownFlag = "unknown_flag",
        /// Interleaved arrays are separated by other fields.
        InterleavedNotAdjacent = "interleaved_not_adjacent",
        /// A malformed or empty patch range.
        BadRange = "bad_range",
        /// An included file does not exist, includes itself, or exceeds the limit.
        BadInclude = "bad_include",
        /// A file name that ends in `.def` but is otherwise malformed.
        BadFileName = "bad_file_name",
        /// A construct from another dialect.
        WrongDialect = "wrong_dialect",
        /// A layout too large for any message.
        TooLarge = "too_large",
        /// A scalar field that occurs more than once; each copy takes up bytes.
        DuplicateField = "duplicate_field",
        /// White space other than space and tab inside a line.
        OddSpace = "odd_space",
        /// An undocumented platform.
        UnknownPlatform = "unknown_platform",
        /// A definition written as a program, which is not read.
        CodeDefinition = "code_definition",
        /// Two files with the same name, version and platform.
        DuplicateFile = "duplicate_file",
        /// A code that is not a decimal number.
        BadCode = "bad_code",
        /// A code too large for an opcode.
        CodeOutOfRange = "code_out_of_range",
        /// A name occurs twice in a map; the last one wins.
        DuplicateName = "duplicate_name",
        /// A code occurs twice in a map; it maps to the last name.
        DuplicateCode = "duplicate_code",
        /// Malformed or unexpected JSON.
        BadJson = "bad_json",
        /// A file that is not text, or text in an unsupported encoding.
        NotText = "not_text",
        /// Text that is not UTF-8 and is read as Latin-1.
        NotUtf8 = "not_utf8",
    }
}

/// A problem in the text: the rule that was broken, and where.
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
