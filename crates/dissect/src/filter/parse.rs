//! Parses filters.

use winnow::Parser;
use winnow::combinator::{alt, opt, repeat, separated};
use winnow::error::ErrMode;
use winnow::stream::{LocatingSlice, Location as _};
use winnow::token::{literal, take_while};

use super::error::{FilterError, Problem};
use super::expression::{
    ANY, Check, Comparison, Expression, Path, Pattern, RESERVED, Step, is_word_char, is_word_start,
};
use super::input::{
    Input, Outcome, Usage, close, peek_word, problem, rest, space, token, word, word_of,
};
use super::value;

/// The maximum length of a filter in bytes.
pub(super) const MAX_BYTES: usize = 64 << 10;
/// The maximum nesting depth of parentheses and `not`s.
pub(super) const MAX_DEPTH: usize = 64;
/// The maximum number of steps in a path.
pub(super) const MAX_STEPS: usize = 64;
pub(super) fn parse(filter: &str) -> Result<Expression, FilterError> {
    if filter.len() > MAX_BYTES {
        let wanted = format!("at most {MAX_BYTES} bytes");
        return Err(Problem::limit(MAX_BYTES, "bytes", MAX_BYTES, wanted).in_filter(filter));
    }
    let mut input = Input { input: LocatingSlice::new(filter), state: Usage::default() };
    match whole(&mut input) {
        Ok(expression) => Ok(expression),
        Err(ErrMode::Cut(problem) | ErrMode::Backtrack(problem)) => Err(problem.in_filter(filter)),
        // Only occurs with partial input.
        Err(ErrMode::Incomplete(_)) => Err(problem(&input, "more").in_filter(filter)),
    }
}

fn whole(input: &mut Input<'_>) -> Outcome<Expression> {
    let expression = either(input)?;
    space(input)?;
    let hint = match (rest(input).chars().next(), peek_word(input)) {
        (None, _) => return Ok(expression),
        (_, "AND" | "OR" | "NOT") => "write `and`, `or` and `not` in lower case",
        (_, "not") => "write `not` before the whole test",
        (Some(')'), _) => "there is no open `(`",
        (Some('*'), _) => "`*` works only in message names; try `matches`",
        (Some('|'), _) => "did you mean `or`?",
        (Some('&'), _) => "did you mean `and`?",
        (Some(','), _) => "did you mean `and` or `or`?",
        _ => return Err(ErrMode::Cut(problem(input, "`and`, `or` or the end"))),
    };
    Err(ErrMode::Cut(problem(input, "`and`, `or` or the end").hint(hint)))
}

/// `a or b or c`
fn either(input: &mut Input<'_>) -> Outcome<Expression> {
    separated(1.., both, token(alt((word("or"), literal("||")))))
        .map(Expression::any)
        .parse_next(input)
}

/// `a and b and c`
fn both(input: &mut Input<'_>) -> Outcome<Expression> {
    separated(1.., negated, token(alt((word("and"), literal("&&")))))
        .map(Expression::all)
        .parse_next(input)
}

/// `not a`
fn negated(input: &mut Input<'_>) -> Outcome<Expression> {
    space(input)?;
    let at = input.current_token_start();
    if opt(alt((word("not"), literal("!")))).parse_next(input)?.is_some() {
        deeper(input, at, negated).map(|inner| Expression::Not(Box::new(inner)))
    } else if opt(literal("(")).parse_next(input)?.is_some() {
        let inner = deeper(input, at, either)?;
        close(input, ")", "`and`, `or` or `)`")?;
        Ok(inner)
    } else {
        test(input)
    }
}

fn deeper(
    input: &mut Input<'_>,
    at: usize,
    parser: fn(&mut Input<'_>) -> Outcome<Expression>,
) -> Outcome<Expression> {
    if input.state.depth >= MAX_DEPTH {
        let wanted = format!("at most {MAX_DEPTH} nested parentheses and `not`s");
        return Err(ErrMode::Cut(Problem::limit(at, "depth", MAX_DEPTH, wanted)));
    }
    input.state.depth += 1;
    let inner = parser(input)?;
    input.state.depth -= 1;
    Ok(inner)
}

/// `accountName == "x"`, `exists(refs)`, `auth.*`
fn test(input: &mut Input<'_>) -> Outcome<Expression> {
    let at = input.current_token_start();
    let existence = (word("exists"), token(literal("(")));
    if opt(existence).parse_next(input)?.is_some() {
        space(input)?;
        let path = head(input)?.path()?;
        close(input, ")", "`)`")?;
        return Ok(Expression::Exists(path));
    }
    let head = head(input)?;
    space(input)?;
    let operator = input.current_token_start();
    if let Some(check) = check(input)? {
        return match (head.word == ANY && head.further.is_empty(), check) {
            (false, check) => head.path().map(|path| Expression::Test(path, check)),
            (true, check @ Check::Contains(_)) => Ok(Expression::Anywhere(check)),
            (true, check) => {
                let problem =
                    Problem::new(operator, "`contains`", format!("`{}`", check.operator()));
                let hint =
                    "`any` stands for every value; a field of that name is written `fields.any`";
                Err(ErrMode::Cut(problem.hint(hint)))
            }
        };
    }
    if !head.further.is_empty() || head.word == "fields" || head.word.starts_with("fields.") {
        return head.path().map(Expression::Exists);
    }
    if !head.word.starts_with(|c| is_word_start(c) || c == '*') {
        let wanted = "a field or a message name";
        return Err(ErrMode::Cut(Problem::new(at, wanted, format!("`{}`", head.word))));
    }
    names(at, head.word)?;
    Ok(Expression::Message(Pattern(head.word.into())))
}

/// The start of a test.
struct Head<'f> {
    at: usize,
    /// A path or a pattern.
    word: &'f str,
    /// Steps that only a path can have: `[3].x`.
    further: Vec<Step>,
}

fn head<'f>(input: &mut Input<'f>) -> Outcome<Head<'f>> {
    let at = input.current_token_start();
    let text = take_while(0.., is_word_char).parse_next(input)?;
    if RESERVED.contains(&text) {
        let problem = Problem::new(at, "a test", format!("`{text}`"));
        let hint = format!("a field of that name is written `[\"{text}\"]`");
        return Err(ErrMode::Cut(problem.hint(hint)));
    }
    let steps: Vec<Vec<Step>> = repeat(0.., bracket).parse_next(input)?;
    let head = Head { at, word: text, further: steps.into_iter().flatten().collect() };
    if !head.word.is_empty() || !head.further.is_empty() {
        return Ok(head);
    }
    let wanted = "a field or a message name";
    let hint = match rest(input).chars().next() {
        Some('"' | '\'') => "put values on the right of the operator",
        Some('=' | '<' | '>' | '~') => "the field is missing",
        Some('&' | '|') => "there is an extra operator",
        _ => return Err(ErrMode::Cut(problem(input, wanted))),
    };
    Err(ErrMode::Cut(problem(input, wanted).hint(hint)))
}

/// `[3]`, `[*]` or `["a name"]`, and names after it: `[3].parentId`.
fn bracket(input: &mut Input<'_>) -> Outcome<Vec<Step>> {
    literal("[").parse_next(input)?;
    space(input)?;
    let step = if rest(input).starts_with('"') {
        Step::Name(value::quoted(input)?.into())
    } else {
        let at = input.current_token_start();
        match opt(take_while(1.., |c: char| is_word_char(c))).parse_next(input)? {
            Some("*") => Step::Each,
            Some(number) => match number.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => {
                    let wanted = "a number, `*` or a name in quotes";
                    let problem = Problem::new(at, wanted, format!("`{number}`"));
                    return Err(ErrMode::Cut(problem));
                }
            },
            None => return Err(ErrMode::Cut(problem(input, "a number, `*` or a name in quotes"))),
        }
    };
    close(input, "]", "`]`")?;
    let mut steps = vec![step];
    if opt(literal(".")).parse_next(input)?.is_some() {
        let at = input.current_token_start();
        let text = take_while(0.., |c| is_word_char(c) && c != '*').parse_next(input)?;
        steps.extend(names(at, text)?.into_iter().map(|name| Step::Name(name.into())));
    }
    Ok(steps)
}

/// Splits a word at its dots.
fn names(at: usize, word: &str) -> Outcome<Vec<&str>> {
    let mut place = at;
    let mut names = Vec::new();
    for name in word.split('.') {
        if name.is_empty() {
            let found = if place < at + word.len() { "`.`" } else { "none" };
            return Err(ErrMode::Cut(Problem::new(
                place,
                "a name on both sides of the dot",
                found,
            )));
        }
        place += name.len() + 1;
        names.push(name);
    }
    Ok(names)
}

impl Head<'_> {
    fn path(self) -> Outcome<Path> {
        let wrong = |hint| {
            let found = format!("`{}`", self.word);
            ErrMode::Cut(Problem::new(self.at, "a field", found).hint(hint))
        };
        let mut steps = Vec::new();
        if !self.word.is_empty() {
            if self.word.contains('*') {
                return Err(wrong("`*` works only in message names; write `[*]` for any element"));
            }
            if !self.word.starts_with(is_word_start) {
                return Err(wrong("put the field on the left and the value on the right"));
            }
            let names = names(self.at, self.word)?;
            steps.extend(names.into_iter().map(|name| Step::Name(name.into())));
        }
        steps.extend(self.further);
        if steps.len() > MAX_STEPS {
            let wanted = format!("at most {MAX_STEPS} steps");
            return Err(ErrMode::Cut(Problem::limit(self.at, "steps", MAX_STEPS, wanted)));
        }
        Ok(Path::new(steps))
    }
}

/// The operator and its operand, if any.
fn check(input: &mut Input<'_>) -> Outcome<Option<Check>> {
    space(input)?;
    let at = input.current_token_start();
    if let Some(comparison) = opt(comparison).parse_next(input)? {
        let literal = value::literal(input)?;
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if ordered && !value::has_order(&literal) {
            let wanted = "`==` or `!=`";
            let found = format!("`{}` with {literal}", comparison.sign());
            return Err(ErrMode::Cut(Problem::new(at, wanted, found)));
        }
        return Ok(Some(Check::Compare(comparison, literal)));
    }
    let operator = opt(alt((literal("~"), word_of(&OPERATORS)))).parse_next(input)?;
    Ok(Some(match operator {
        Some("contains") => Check::Contains(Box::new(value::needle(input)?)),
        Some("startswith") => Check::StartsWith(value::piece(input)?),
        Some("endswith") => Check::EndsWith(value::piece(input)?),
        Some("has") => Check::Has(value::mask(input)?),
        Some("in") => Check::In(value::set(input)?),
        Some("is") => Check::Is(value::class(input)?),
        Some(_) => Check::Matches(value::regular(input)?),
        None => return Ok(None),
    }))
}

/// Operators in letters, except comparisons.
const OPERATORS: [&str; 7] = ["contains", "startswith", "endswith", "matches", "has", "in", "is"];

/// `==` and the other comparisons, including their spellings as letters in other programs.
fn comparison(input: &mut Input<'_>) -> Outcome<Comparison> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let at = input.current_token_start();
    let signs = take_while(1.., ['=', '!', '<', '>', '~', '&', '|']);
    let (sign, hint) = match alt((signs, word_of(&WORDS))).parse_next(input)? {
        "==" | "eq" => return Ok(Equal),
        "!=" | "ne" => return Ok(NotEqual),
        "<" | "lt" => return Ok(Less),
        "<=" | "le" => return Ok(LessOrEqual),
        ">" | "gt" => return Ok(Greater),
        ">=" | "ge" => return Ok(GreaterOrEqual),
        "&" => ("&", "did you mean `and`, or `has` to test bits?"),
        "|" => ("|", "did you mean `or`?"),
        sign @ ("=" | "===" | "==!") => (sign, "did you mean `==`?"),
        sign @ ("!==" | "<>" | "=!" | "=!=") => (sign, "did you mean `!=`?"),
        sign @ "=<" => (sign, "did you mean `<=`?"),
        sign @ "=>" => (sign, "did you mean `>=`?"),
        sign @ ("=~" | "~~" | "~=") => (sign, "did you mean `~`?"),
        "!~" => ("!~", "write `not` before the whole test"),
        sign if sign.starts_with(['=', '<', '>']) || sign.starts_with("!=") => {
            (sign, "the comparison operators are `==`, `!=`, `<`, `<=`, `>` and `>=`")
        }
        // The end of this test, or another operator.
        _ => return Err(ErrMode::Backtrack(problem(input, "a comparison"))),
    };
    let problem = Problem::new(at, "a comparison", format!("`{sign}`"));
    Err(ErrMode::Cut(problem.hint(hint)))
}

/// Comparisons in letters.
pub(super) const WORDS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
