//! Parses values.

use worldwire_core::json::{Json, Number};
use worldwire_core::value::{parse_guid, parse_hex, push_hex};

use super::scan::{Outcome, Scanner, is_word_char, shown};
use super::syntax::{Operator, Span, Spanned, Value};

/// The maximum nesting depth of values.
const MAX_DEPTH: usize = 64;
/// The maximum number of values in an expression.
const MAX_OPERANDS: usize = 256;

impl Scanner<'_> {
    /// Consumes a value: a sum of products.
    pub(super) fn value(&mut self) -> Outcome<Value> {
        let at = self.at;
        if self.depth >= MAX_DEPTH {
            let message = format!("values can be nested at most {MAX_DEPTH} levels deep");
            return Err(self.error(at..at + 1, message));
        }
        self.depth += 1;
        let value = self.joined(Self::product, |mark| match mark {
            '+' => Some(Operator::Plus),
            '-' => Some(Operator::Minus),
            _ => None,
        });
        self.depth -= 1;
        value
    }

    fn product(&mut self) -> Outcome<Value> {
        self.joined(Self::operand, |mark| (mark == '*').then_some(Operator::Times))
    }

    fn joined(
        &mut self,
        operand: fn(&mut Self) -> Outcome<Value>,
        operator: fn(char) -> Option<Operator>,
    ) -> Outcome<Value> {
        let mut value = operand(self)?;
        let mut count = 1;
        loop {
            let at = self.at;
            self.space();
            let Some(operator) = self.peek().and_then(operator) else {
                self.at = at;
                return Ok(value);
            };
            if count >= MAX_OPERANDS {
                let message = format!("an expression can have at most {MAX_OPERANDS} values");
                return Err(self.error(at..at + 1, message));
            }
            count += 1;
            self.at += 1;
            self.blank();
            value = Value::Computed(operator, Box::new((value, operand(self)?)));
        }
    }

    fn operand(&mut self) -> Outcome<Value> {
        let start = self.at;
        if let Some(bytes) = self.hex()? {
            return Ok(Value::Constant(hex(&bytes)));
        }
        if self.peek() == Some('"') || self.rest().starts_with("r\"") {
            return Ok(Value::Constant(self.text("text")?.into()));
        }
        match self.peek() {
            Some('{') => self.object(),
            Some('[') => self.list(),
            Some('(') => {
                self.at += 1;
                self.blank();
                let value = self.value()?;
                self.blank();
                self.mark(')', "an operator or `)`")?;
                Ok(value)
            }
            Some('-') if !self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.at += 1;
                self.space();
                if self.depth >= MAX_DEPTH {
                    let message = format!("values can be nested at most {MAX_DEPTH} levels deep");
                    return Err(self.error(start..self.at, message));
                }
                self.depth += 1;
                let value = self.operand();
                self.depth -= 1;
                Ok(Value::Negative(Box::new(value?)))
            }
            Some('\'' | '`') => {
                let help = "put text in double quotes";
                Err(self.error_with(start..start + 1, "wanted a value", help))
            }
            _ => self.bare(),
        }
    }

    /// A word, a number, or bytes with colons.
    fn bare(&mut self) -> Outcome<Value> {
        let start = self.at;
        let rest = self.rest();
        let run = rest.find(|c: char| !is_word_char(c) && c != ':').unwrap_or(rest.len());
        let run = rest.get(..run).unwrap_or_default();
        if let Some(bytes) = colon_bytes(run) {
            self.at += run.len();
            return Ok(Value::Constant(hex(&bytes)));
        }
        let word = self.peek_word();
        let span = start..start + word.len();
        match word {
            "" => return Err(self.wanted("a value")),
            "true" | "false" => {
                self.at = span.end;
                return Ok(Value::Constant((word == "true").into()));
            }
            "null" => {
                self.at = span.end;
                return Ok(Value::Constant(Json::Null));
            }
            _ => {}
        }
        let is_number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        if is_number {
            // `1e+5`
            let exponent = rest.get(word.len()..).filter(|_| word.ends_with(['e', 'E']));
            let exponent = exponent.and_then(|rest| rest.strip_prefix('+')).map_or(0, |digits| {
                1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())
            });
            let span = start..span.end + exponent;
            self.at = span.end;
            return self.number(span);
        }
        self.at = start;
        self.path().map(Value::Word)
    }

    fn number(&mut self, span: Span) -> Outcome<Value> {
        let word = self.slice(span.clone());
        if let Some(number) = number(word) {
            return Ok(Value::Constant(Json::Number(number)));
        }
        let is_text = parse_guid(word).is_some() && word.contains('-')
            || word.parse::<core::net::Ipv4Addr>().is_ok();
        if is_text {
            return Ok(Value::Constant(word.into()));
        }
        let message = format!("`{}` is not a number", shown(word));
        let help = match word.trim_start_matches('-').contains('-') {
            true => "put spaces around `-`",
            false => "numbers have at most 64 bits; put text that starts with a digit in quotes",
        };
        Err(self.error_with(span, message, help))
    }

    fn list(&mut self) -> Outcome<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank();
            if self.takes(']') {
                return Ok(Value::List(items));
            }
            items.push(self.value()?);
            self.blank();
            if !self.takes(',') && self.peek() != Some(']') {
                return Err(self.wanted("`,` or `]`"));
            }
        }
    }

    fn object(&mut self) -> Outcome<Value> {
        self.at += 1;
        let mut entries: Vec<(String, Value)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        loop {
            self.blank();
            if self.takes('}') {
                return Ok(Value::Object(entries));
            }
            let at = self.at;
            let name = match self.peek() {
                Some('"') => Spanned { text: self.text("a name")?, span: at..self.at },
                _ => self.word("the name of a field or `}`")?,
            };
            if !names.insert(name.text.clone()) {
                let message = format!("`{}` is given twice", shown(&name.text));
                return Err(self.error(name.span, message));
            }
            self.blank();
            self.mark(':', "`:` and a value")?;
            self.blank();
            entries.push((name.text, self.value()?));
            self.blank();
            if !self.takes(',') && self.peek() != Some('}') {
                return Err(self.wanted("`,` or `}`"));
            }
        }
    }
}

/// A number as in JSON, or hexadecimal.
fn number(word: &str) -> Option<Number> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let value = u64::from_str_radix(hex, 16).ok()?;
        return match sign {
            "" => Some(value.into()),
            _ => 0_i64.checked_sub_unsigned(value).map(Number::from),
        };
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let whole = word.parse::<u64>().map(Number::from);
        return whole.or_else(|_| word.parse::<i64>().map(Number::from)).ok();
    }
    let is_real = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    word.parse::<f64>().ok().filter(|_| is_real).and_then(Number::from_f64)
}

/// `00:ff:1a`
fn colon_bytes(run: &str) -> Option<Vec<u8>> {
    if !run.contains(':') {
        return None;
    }
    let pair = |pair: &str| match parse_hex(pair)?.as_slice() {
        [byte] if pair.len() == 2 => Some(*byte),
        _ => None,
    };
    run.split(':').map(pair).collect()
}

/// Bytes as JSON.
fn hex(bytes: &[u8]) -> Json {
    let mut digits = String::new();
    push_hex(&mut digits, bytes);
    [("$hex", digits)].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use worldwire_core::Source;

    use super::super::scan::Scanner;
    use super::super::syntax::Value;

    fn read(text: &str) -> Result<String, String> {
        let mut scanner = Scanner::new(Source::new("", text), text);
        match scanner.value() {
            Ok(value) => Ok(format!("{}|{}", shown(&value), scanner.rest())),
            Err(_) => Err(scanner.found.iter().map(ToString::to_string).collect()),
        }
    }

    fn shown(value: &Value) -> String {
        match value {
            Value::Constant(json) => json.to_string(),
            Value::Word(word) => word.text.clone(),
            Value::List(items) => {
                format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
            }
            Value::Object(entries) => {
                let entries =
                    entries.iter().map(|(name, value)| format!("{name}:{}", shown(value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }
            Value::Negative(value) => format!("-{}", shown(value)),
            Value::Computed(operator, both) => {
                format!("({} {operator:?} {})", shown(&both.0), shown(&both.1))
            }
        }
    }

    #[test]
    fn values_of_every_kind_are_read() {
        for (text, wanted) in [
            ("5;", "5|;"),
            ("-5 }", "-5| }"),
            ("0xff", "255|"),
            ("1.5e+3\n", "1500.0|\n"),
            ("true", "true|"),
            ("null", "null|"),
            ("\"a\\u{e9}\\n\"", "\"aé\\n\"|"),
            ("r\"a\\\"", "\"a\\\\\"|"),
            ("hex\"00 ff\"", "{\"$hex\":\"00ff\"}|"),
            ("00:ff:1a", "{\"$hex\":\"00ff1a\"}|"),
            ("127.0.0.1", "\"127.0.0.1\"|"),
            ("12345678-1234-5678-1234-56781234567A", "\"12345678-1234-5678-1234-56781234567A\"|"),
            ("a + 2 * b - 1", "((a Plus (2 Times b)) Minus 1)|"),
            ("(a + 2)*b", "((a Plus 2) Times b)|"),
            ("-a * 2", "(-a Times 2)|"),
            ("refs[3].x[*].y[\"a b\"]", "refs[3].x[*].y[\"a b\"]|"),
            ("{ \"a\": [1, b,], c: { d: -1 } }", "{a:[1,b],c:{d:-1}}|"),
            ("18446744073709551615", "18446744073709551615|"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn mistakes_in_values_are_explained() {
        for (text, wanted) in [
            ("", "wanted a value, found the end of the file"),
            ("5-3", "`5-3` is not a number (put spaces around `-`)"),
            ("5x", "`5x` is not a number"),
            ("99999999999999999999", "numbers have at most 64 bits"),
            ("'a'", "put text in double quotes"),
            ("\"a", "no closing quote on this line"),
            ("\"\\q\"", "unknown escape `\\q`"),
            ("{ a 5 }", "wanted `:` and a value, found `5`"),
            ("{ a: 5, a: 6 }", "`a` is given twice"),
            ("[1 2]", "wanted `,` or `]`, found `2`"),
            ("hex\"abc\"", "an even number of hexadecimal digits"),
            ("1 +", "wanted a value"),
            (&"[".repeat(99), "values can be nested at most 64 levels deep"),
            (&"-".repeat(99), "values can be nested at most 64 levels deep"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
