//! Parses rules files.

use core::time::Duration;

use worldwire_core::{Diagnostic, Source, nearest};

use super::scan::{Outcome, Scanner, shown, without_comments};
use super::syntax::{Action, Item, STATEMENTS, Span, Spanned, Statement, Target, Value};

/// The maximum size of a rules file in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The maximum number of rules, blocks and variables in a file.
pub(super) const MAX_ITEMS: usize = 10_000;
/// The shortest time between two runs of a block.
const MIN_PERIOD: Duration = Duration::from_millis(10);

/// The parts of a file, and all errors in it.
pub(super) fn parse(source: &Source<'_>) -> (Vec<Item>, Vec<Diagnostic>) {
    if source.text().len() > MAX_BYTES {
        let limit = format!("a rules file can have at most {MAX_BYTES} bytes");
        return (Vec::new(), vec![source.error(MAX_BYTES..MAX_BYTES, limit)]);
    }
    let text = without_comments(source.text());
    let renamed = Source::new(source.name(), source.text());
    let mut scanner = Scanner::new(renamed, &text);
    let mut items = Vec::new();
    loop {
        while {
            scanner.blank();
            scanner.takes(';')
        } {}
        if scanner.rest().is_empty() {
            break;
        }
        let start = scanner.at;
        if items.len() >= MAX_ITEMS {
            let _ =
                scanner.error(start..start, format!("a file can have at most {MAX_ITEMS} rules"));
            break;
        }
        match item(&mut scanner) {
            Ok(item) => items.push(item),
            Err(_) => recover(&mut scanner, start),
        }
    }
    (items, scanner.found)
}

fn item(scanner: &mut Scanner<'_>) -> Outcome<Item> {
    let word = scanner.peek_word();
    let span = scanner.at..scanner.at + word.len();
    match word {
        "let" => {
            let (name, value) = assignment(scanner)?;
            ended(scanner)?;
            Ok(Item::Let { name, value })
        }
        "when" => {
            scanner.at = span.end;
            let filter = filter(scanner)?;
            Ok(Item::When { filter, body: body(scanner)? })
        }
        "every" => {
            scanner.at = span.end;
            scanner.space();
            let period = scanner.duration(MIN_PERIOD)?;
            Ok(Item::Every { period, body: body(scanner)? })
        }
        "on" => {
            scanner.at = span.end;
            scanner.space();
            let event = scanner.word("`connect`")?;
            if event.text != "connect" {
                let message = format!("unknown event `{}`", shown(&event.text));
                return Err(scanner.error_with(event.span, message, "the only event is `connect`"));
            }
            Ok(Item::Connect { body: body(scanner)? })
        }
        "" => Err(scanner.wanted("`when`, `every`, `on` or `let`")),
        _ if STATEMENTS.contains(&word) => {
            let message = format!("`{word}` needs a block around it");
            let help = format!("write `when FILTER {{ {word} ... }}`");
            Err(scanner.error_with(span, message, help))
        }
        _ => {
            let near = nearest(word, ["when", "every", "on", "let"]);
            let help = near.map_or_else(
                || "a rule begins with `when`, `every`, `on` or `let`".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            Err(scanner.error_with(span, format!("unknown rule `{}`", shown(word)), help))
        }
    }
}

/// The filter of a rule, up to the brace that opens its block. A brace after `in` opens a list.
fn filter(scanner: &mut Scanner<'_>) -> Outcome<Spanned> {
    let start = scanner.at;
    let rest = scanner.rest();
    let (mut quoted, mut raw, mut list) = (false, false, None);
    let mut skips = false;
    let mut end = None;
    for (at, c) in rest.char_indices() {
        let before = || rest.get(..at).unwrap_or_default();
        match c {
            _ if skips => skips = false,
            '\\' if quoted && !raw => skips = true,
            '"' if quoted => quoted = false,
            // Text in quotes cannot continue on the next line.
            '\n' if quoted => quoted = false,
            _ if quoted => {}
            '"' => {
                quoted = true;
                raw = before().ends_with("r") || before().ends_with("hex");
            }
            '}' if list.is_some() => list = None,
            '{' => {
                if let Some(list) = list {
                    let span = start + list..start + list + 1;
                    let help = "end the list with `}`";
                    return Err(scanner.error_with(span, "no closing `}`", help));
                }
                let word = before().trim_end();
                let is_in = word.strip_suffix("in").is_some_and(|before| {
                    before.ends_with(|c: char| c.is_whitespace() || c == ']' || c == ')')
                });
                if !is_in {
                    end = Some(at);
                    break;
                }
                list = Some(at);
            }
            _ => {}
        }
    }
    let Some(end) = end else {
        let help = "a rule is `when FILTER { STATEMENTS }`";
        return Err(scanner.error_with(start..start, "this rule has no block", help));
    };
    scanner.at = start + end;
    let span = trimmed(scanner, start..start + end);
    if span.is_empty() {
        let help = "`when * { ... }` applies to every message";
        return Err(scanner.error_with(start..start + 1, "the filter is missing", help));
    }
    Ok(Spanned { text: scanner.slice(span.clone()).to_owned(), span })
}

fn trimmed(scanner: &Scanner<'_>, span: Span) -> Span {
    let text = scanner.slice(span.clone());
    let start = span.start + (text.len() - text.trim_start().len());
    start..(span.end - (text.len() - text.trim_end().len())).max(start)
}

/// `{ statement; statement }`
fn body(scanner: &mut Scanner<'_>) -> Outcome<Vec<Statement>> {
    scanner.blank();
    let start = scanner.at;
    scanner.mark('{', "`{` and statements")?;
    let mut statements = Vec::new();
    let mut is_ok = true;
    loop {
        scanner.blank();
        while scanner.takes(';') {
            scanner.blank();
        }
        if scanner.takes('}') {
            break;
        }
        if scanner.rest().is_empty() {
            return Err(scanner.error_with(
                start..start + 1,
                "no closing `}`",
                "end the block with `}`",
            ));
        }
        let begin = scanner.at;
        match statement(scanner).and_then(|action| ended(scanner).map(|()| action)) {
            Ok((action, end)) => statements.push(Statement { span: begin..end, action }),
            Err(_) => {
                is_ok = false;
                skip_statement(scanner, begin);
            }
        }
    }
    if is_ok && statements.is_empty() {
        let help = "write at least one statement, such as `drop`";
        let _ = scanner.error_with(start..scanner.at, "this block does nothing", help);
    }
    Ok(statements)
}

fn statement(scanner: &mut Scanner<'_>) -> Outcome<(Action, usize)> {
    let word = scanner.peek_word();
    let span = scanner.at..scanner.at + word.len();
    let action = match word {
        "let" => {
            let (name, value) = assignment(scanner)?;
            return Ok((Action::Let { name, value }, scanner.at));
        }
        "set" => {
            scanner.at = span.end;
            scanner.space();
            let path = scanner.path()?;
            equals(scanner)?;
            Action::Set { path, value: scanner.value()? }
        }
        "drop" => {
            scanner.at = span.end;
            Action::Drop
        }
        "pause" => {
            scanner.at = span.end;
            Action::Pause
        }
        "delay" => {
            scanner.at = span.end;
            scanner.space();
            Action::Delay(scanner.duration(Duration::from_millis(1))?)
        }
        "log" => {
            scanner.at = span.end;
            scanner.space();
            Action::Log(scanner.template()?)
        }
        "count" => {
            scanner.at = span.end;
            scanner.space();
            Action::Count(scanner.text("a name in double quotes")?)
        }
        "inject" => {
            scanner.at = span.end;
            scanner.space();
            inject(scanner)?
        }
        "" => return Err(scanner.wanted("a statement or `}`")),
        _ => {
            let near = nearest(word, STATEMENTS);
            let help = near.map_or_else(
                || format!("statements are {}", worldwire_core::listed(STATEMENTS)),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("unknown statement `{}`", shown(word));
            return Err(scanner.error_with(span, message, help));
        }
    };
    Ok((action, scanner.at))
}

/// `let name = value`
fn assignment(scanner: &mut Scanner<'_>) -> Outcome<(Spanned, Value)> {
    scanner.at += "let".len();
    scanner.space();
    let name = scanner.word("the name of a variable")?;
    let is_plain = name.text.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_plain || name.text.starts_with(|c: char| c.is_numeric()) {
        let message = format!("`{}` cannot name a variable", shown(&name.text));
        let help = "use letters, digits and `_`, and begin with a letter";
        return Err(scanner.error_with(name.span, message, help));
    }
    equals(scanner)?;
    Ok((name, scanner.value()?))
}

fn equals(scanner: &mut Scanner<'_>) -> Outcome<()> {
    scanner.space();
    let at = scanner.at;
    scanner.mark('=', "`=`")?;
    if scanner.takes('=') {
        let help = "`=` sets a value; `==` is for comparisons in filters";
        return Err(scanner.error_with(at..at + 2, "wanted `=`, found `==`", help));
    }
    scanner.space();
    Ok(())
}

/// `client NAME { fields }`
fn inject(scanner: &mut Scanner<'_>) -> Outcome<Action> {
    let to = scanner.word("`client`, `server` or `back`")?;
    let to = match to.text.as_str() {
        "client" => Target::Client,
        "server" => Target::Server,
        "back" => Target::Back,
        other => {
            let message = format!("wanted `client`, `server` or `back`, found `{}`", shown(other));
            let help = "after `inject`, write the receiver, then the message";
            return Err(scanner.error_with(to.span, message, help));
        }
    };
    scanner.space();
    let name = scanner.word("the name of a message")?;
    scanner.space();
    let fields = match scanner.peek() {
        Some('{') => scanner.value()?,
        _ => Value::Object(Vec::new()),
    };
    Ok(Action::Inject { to, name, fields })
}

/// A statement must end here.
fn ended(scanner: &mut Scanner<'_>) -> Outcome<()> {
    scanner.space();
    match scanner.peek() {
        None | Some('\n' | ';' | '}') => Ok(()),
        Some(_) => Err(scanner.wanted("`;` or a new line after the statement")),
    }
}

/// Skips the rest of a statement that began at `begin`: up to the end of its line, or the brace
/// that ends its block.
fn skip_statement(scanner: &mut Scanner<'_>, begin: usize) {
    let mut open = depth(scanner.slice(begin..scanner.at));
    let mut quoted = false;
    for (at, c) in scanner.rest().char_indices() {
        match c {
            '"' => quoted = !quoted,
            '\n' => {
                quoted = false;
                if open <= 0 {
                    scanner.at += at;
                    return;
                }
            }
            _ if quoted => {}
            ';' if open <= 0 => {
                scanner.at += at;
                return;
            }
            '{' => open += 1,
            '}' if open <= 0 => {
                scanner.at += at;
                return;
            }
            '}' => open -= 1,
            _ => {}
        }
    }
    scanner.at += scanner.rest().len();
}

/// The number of braces still open after a text.
fn depth(text: &str) -> i64 {
    let mut quoted = false;
    let mut open = 0;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '\n' => quoted = false,
            '{' if !quoted => open += 1,
            '}' if !quoted => open -= 1,
            _ => {}
        }
    }
    open
}

/// Continues after a rule that cannot be read: at the next line that begins a rule.
fn recover(scanner: &mut Scanner<'_>, start: usize) {
    let from = scanner.at.max(start + 1);
    scanner.at = start;
    let mut at = start;
    for line in scanner.rest().split_inclusive('\n') {
        let word = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if at >= from && matches!(word, "when" | "every" | "on" | "let") {
            break;
        }
        at += line.len();
    }
    scanner.at = at;
}
