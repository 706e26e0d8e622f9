//! Text to filters.

use regex_lite::RegexBuilder;
use worldwire_core::value::parse_hex;

use super::{Expression, FilterError, Literal, Operator, Path, Step};

/// The most bytes a filter may have.
const MOST_BYTES: usize = 64 << 10;
/// The most parentheses and nots inside each other.
const MOST_DEPTH: usize = 64;
/// The most steps of a path.
const MOST_STEPS: usize = 64;
/// The most bytes a compiled pattern may take.
const MOST_PATTERN_BYTES: usize = 1 << 20;

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > MOST_BYTES {
        let problem = format!("wanted at most {MOST_BYTES} bytes, found {}", text.len());
        return Err(FilterError { column: 1, problem, filter: String::new() });
    }
    let mut parser = Parser { text, at: 0, token: Token::End, start: 0, depth: 0 };
    parser.advance()?;
    let expression = parser.any()?;
    if parser.token != Token::End {
        return Err(parser.wanted("`and`, `or` or the end"));
    }
    Ok(expression)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A word: a name, a path, a number, an operator in letters.
    Bare(String),
    /// Text in quotes.
    Quoted(String),
    /// Bytes: `hex"00ff"`.
    Hex(Vec<u8>),
    /// An operator or bracket.
    Mark(&'static str),
    End,
}

/// Marks, longest first.
const MARKS: [&str; 16] =
    ["==", "!=", "<=", ">=", "&&", "||", "..", "<", ">", "!", "~", "(", ")", "{", "}", ","];

struct Parser<'t> {
    text: &'t str,
    /// The byte behind the present token.
    at: usize,
    token: Token,
    /// The first byte of the present token.
    start: usize,
    depth: usize,
}

impl Parser<'_> {
    fn error(&self, at: usize, problem: impl Into<String>) -> FilterError {
        let before = self.text.get(..at).unwrap_or(self.text);
        FilterError {
            column: before.chars().count() + 1,
            problem: problem.into(),
            filter: self.text.to_owned(),
        }
    }

    fn wanted(&self, wanted: &str) -> FilterError {
        let found = match &self.token {
            Token::Bare(word) => format!("`{word}`"),
            Token::Quoted(text) => format!("the text \"{text}\""),
            Token::Hex(_) => "bytes".to_owned(),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end".to_owned(),
        };
        self.error(self.start, format!("wanted {wanted}, found {found}"))
    }

    /// Moves to the next token.
    fn advance(&mut self) -> Result<(), FilterError> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.start = self.at + (rest.len() - trimmed.len());
        self.at = self.start;
        let Some(first) = trimmed.chars().next() else {
            self.token = Token::End;
            return Ok(());
        };
        if first == '"' {
            self.at += 1;
            let text = self.quoted()?;
            self.token = Token::Quoted(text);
            return Ok(());
        }
        if let Some(mark) = MARKS.into_iter().find(|mark| trimmed.starts_with(mark)) {
            self.at += mark.len();
            self.token = Token::Mark(mark);
            return Ok(());
        }
        let length = word_length(trimmed);
        if length == 0 {
            let hint = match first {
                '=' => "; comparing is `==`",
                '&' => "; `and` is `and` or `&&`",
                '|' => "; `or` is `or` or `||`",
                '\'' => "; text stands in double quotes",
                _ => "",
            };
            return Err(self.error(self.start, format!("`{first}` means nothing here{hint}")));
        }
        let word = &trimmed[..length];
        self.at += length;
        if word == "hex" && self.text[self.at..].starts_with('"') {
            self.at += 1;
            let digits = self.quoted()?;
            let bytes = parse_hex(&digits)
                .ok_or_else(|| self.error(self.start, "wanted an even number of hex digits"))?;
            self.token = Token::Hex(bytes);
            return Ok(());
        }
        self.token = Token::Bare(word.to_owned());
        Ok(())
    }

    /// Reads to the closing quote; the opening one is passed.
    fn quoted(&mut self) -> Result<String, FilterError> {
        let mut text = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((place, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += place + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, 't')) => text.push('\t'),
                    // Patterns are full of backslashes; only quote and backslash need one here.
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, c)) => {
                        text.push('\\');
                        text.push(c);
                    }
                    None => break,
                },
                _ => text.push(c),
            }
        }
        Err(self.error(self.start, "this text has no closing quote"))
    }

    fn is_word(&self, words: &[&str]) -> bool {
        match &self.token {
            Token::Bare(word) => words.contains(&word.as_str()),
            Token::Mark(mark) => words.contains(mark),
            _ => false,
        }
    }

    fn any(&mut self) -> Result<Expression, FilterError> {
        let mut parts = vec![self.all()?];
        while self.is_word(&["or", "||"]) {
            self.advance()?;
            parts.push(self.all()?);
        }
        Ok(single(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, FilterError> {
        let mut parts = vec![self.not()?];
        while self.is_word(&["and", "&&"]) {
            self.advance()?;
            parts.push(self.not()?);
        }
        Ok(single(parts, Expression::All))
    }

    fn not(&mut self) -> Result<Expression, FilterError> {
        let nested = self.is_word(&["not", "!", "("]);
        if !nested {
            return self.test();
        }
        if self.depth >= MOST_DEPTH {
            let problem = format!("wanted at most {MOST_DEPTH} parentheses and nots in each other");
            return Err(self.error(self.start, problem));
        }
        self.depth += 1;
        let open = self.is_word(&["("]);
        self.advance()?;
        let expression = if open {
            let inner = self.any()?;
            if !self.is_word(&[")"]) {
                return Err(self.wanted("`)`"));
            }
            self.advance()?;
            inner
        } else {
            Expression::Not(Box::new(self.not()?))
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn test(&mut self) -> Result<Expression, FilterError> {
        let Token::Bare(word) = &self.token else {
            return Err(self.wanted("a message or a field"));
        };
        let (word, start) = (word.clone(), self.start);
        self.advance()?;
        if self.is_word(&["in"]) {
            let path = self.path(&word, start)?;
            self.advance()?;
            return self.members(path);
        }
        if let Some(operator) = self.operator() {
            let path = self.path(&word, start)?;
            self.advance()?;
            let literal = self.literal(operator)?;
            return Ok(Expression::Compare(path, operator, literal));
        }
        if word == "fields" || word.starts_with("fields.") || word.contains('[') {
            return Ok(Expression::Exists(self.path(&word, start)?));
        }
        let good = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '*');
        if !word.chars().all(good) || word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Err(self.error(start, format!("wanted a message or a field, found `{word}`")));
        }
        Ok(Expression::Message(word.into()))
    }

    fn operator(&self) -> Option<Operator> {
        if self.is_word(&["~"]) {
            return Some(Operator::Matches);
        }
        Operator::ALL.into_iter().find(|(_, word)| self.is_word(&[word])).map(|entry| entry.0)
    }

    fn members(&mut self, path: Path) -> Result<Expression, FilterError> {
        if !self.is_word(&["{"]) {
            return Err(self.wanted("`{` and values"));
        }
        self.advance()?;
        let mut values = Vec::new();
        loop {
            let low = self.literal(Operator::Equal)?;
            let mut high = None;
            if self.is_word(&[".."]) {
                self.advance()?;
                high = Some(self.literal(Operator::Equal)?);
            }
            values.push((low, high));
            if self.is_word(&["}"]) {
                self.advance()?;
                return Ok(Expression::In(path, values));
            }
            if !self.is_word(&[","]) {
                return Err(self.wanted("`,` or `}`"));
            }
            self.advance()?;
        }
    }

    fn literal(&mut self, operator: Operator) -> Result<Literal, FilterError> {
        let literal = match (&self.token, operator) {
            (Token::Quoted(text), Operator::Matches) | (Token::Bare(text), Operator::Matches) => {
                let pattern = RegexBuilder::new(text).size_limit(MOST_PATTERN_BYTES).build();
                match pattern {
                    Ok(pattern) => Literal::Pattern(text.as_str().into(), pattern),
                    Err(error) => return Err(self.error(self.start, format!("pattern: {error}"))),
                }
            }
            (_, Operator::Matches) => return Err(self.wanted("a pattern")),
            (Token::Quoted(text), _) => Literal::Text(text.as_str().into()),
            (Token::Hex(bytes), _) => Literal::Bytes(bytes.clone()),
            (Token::Bare(word), _) => bare(word),
            (Token::Mark("=="), _) => return Err(self.error(self.start, "comparing is `==`")),
            _ => return Err(self.wanted("a value")),
        };
        self.advance()?;
        Ok(literal)
    }

    fn path(&self, word: &str, start: usize) -> Result<Path, FilterError> {
        let wrong = || self.error(start, format!("`{word}` is no path such as `refs[3].parentId`"));
        let mut steps = Vec::new();
        for (index, part) in word.split('.').enumerate() {
            let (name, mut brackets) = match part.find('[') {
                Some(at) => part.split_at(at),
                None => (part, ""),
            };
            let good = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
            if name.is_empty() || !name.chars().all(good) {
                return Err(wrong());
            }
            if index == 0 && name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                return Err(wrong());
            }
            steps.push(Step::Name(name.into()));
            while let Some(rest) = brackets.strip_prefix('[') {
                let (inside, behind) = rest.split_once(']').ok_or_else(wrong)?;
                steps.push(match inside {
                    "*" => Step::Each,
                    number => Step::Index(number.parse().map_err(|_| wrong())?),
                });
                brackets = behind;
            }
            if !brackets.is_empty() || steps.len() > MOST_STEPS {
                return Err(wrong());
            }
        }
        Ok(Path(steps))
    }
}

fn single(
    mut parts: Vec<Expression>,
    several: impl FnOnce(Vec<Expression>) -> Expression,
) -> Expression {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            several(parts)
        }
    }
}

/// How many bytes of the text are one word. Two dots in a row end it: they make a range.
fn word_length(text: &str) -> usize {
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        let good =
            c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '[' | ']' | ':' | '-' | '$');
        let exponent = c == '+' && matches!(previous, 'e' | 'E');
        if c == '.' && text[at..].starts_with("..") {
            return at;
        }
        if !good && !exponent {
            return at;
        }
        previous = c;
    }
    text.len()
}

/// A value without quotes: a number, bytes, a truth value, `null`; everything else is text (the
/// name of an enumeration, a UUID, an address).
fn bare(word: &str) -> Literal {
    match word {
        "true" => return Literal::Bool(true),
        "false" => return Literal::Bool(false),
        "null" => return Literal::Null,
        _ => {}
    }
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let integer = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
        None if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse::<u64>().ok().map(i128::from)
        }
        None => None,
    };
    if let Some(value) = integer {
        return Literal::Integer(if negative { -value } else { value });
    }
    let pieces: Vec<&str> = word.split(':').collect();
    if pieces.len() > 1
        && pieces.iter().all(|piece| piece.len() == 2)
        && let Some(bytes) = parse_hex(&pieces.concat())
    {
        return Literal::Bytes(bytes);
    }
    let numeric = digits.starts_with(|c: char| c.is_ascii_digit());
    match word.parse::<f64>() {
        Ok(value) if numeric && value.is_finite() => Literal::Float(value),
        _ => Literal::Text(word.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Filter;

    fn canonical(text: &str) -> String {
        Filter::parse(text).unwrap().to_string()
    }

    fn problem(text: &str) -> String {
        Filter::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn and_binds_tighter_than_or_and_not_tightest() {
        assert_eq!(canonical("a || b && !c"), "a or (b and not c)");
        assert_eq!(canonical("(a or b) and c"), "(a or b) and c");
        assert_eq!(canonical("not a == 1 and b"), "not a == 1 and b");
    }

    #[test]
    fn values_are_read_as_what_they_are() {
        assert_eq!(canonical("x == 0x10"), "x == 16");
        assert_eq!(canonical("x == -1.5e+3"), "x == -1500.0");
        assert_eq!(canonical("x == 127.0.0.1"), "x == \"127.0.0.1\"");
        assert_eq!(canonical("x == 00:ff"), "x == hex\"00ff\"");
        assert_eq!(canonical("x in {1,5..9, \"a\"}"), "x in {1, 5..9, \"a\"}");
        assert_eq!(canonical("x ~ \"^a\\.c$\""), "x matches \"^a\\\\.c$\"");
        assert_eq!(canonical("refs[3].a[*].b"), "refs[3].a[*].b");
    }

    #[test]
    fn mistakes_are_shown_in_place() {
        assert_eq!(
            problem("result = 0"),
            "filter, column 8: `=` means nothing here; comparing is `==`\n  result = 0\n         ^"
        );
        assert_eq!(
            problem("accountName == \"x"),
            "filter, column 16: this text has no closing quote\n  accountName == \"x\n                 ^"
        );
        assert!(problem("a and").contains("column 6: wanted a message or a field, found the end"));
        assert!(problem("(a").contains("wanted `)`, found the end"));
        assert!(problem("a b").contains("wanted `and`, `or` or the end, found `b`"));
        assert!(problem("x ~ \"(\"").contains("pattern"));
        assert!(problem("x[1 == 2").contains("no path"));
    }

    #[test]
    fn depth_and_length_are_bounded() {
        assert!(problem(&"(".repeat(1000)).contains("at most 64"));
        assert!(problem(&"!".repeat(1000)).contains("at most 64"));
        assert!(problem(&"a".repeat(70_000)).contains("at most 65536 bytes"));
    }
}
