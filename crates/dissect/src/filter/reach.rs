//! The result of a filter, as far as a message's name alone determines it.

use super::Filter;
use super::expression::Expression;

impl Filter {
    /// The result for all messages of this name, or `None` if it depends on more than their family
    /// and name. A program can skip decoding a message if this is `Some`.
    #[must_use]
    pub fn by_name(&self, family: &str, name: &str) -> Option<bool> {
        by_name(&self.expression, family, name)
    }
}

fn by_name(expression: &Expression, family: &str, name: &str) -> Option<bool> {
    let of = |part| by_name(part, family, name);
    match expression {
        Expression::Message(pattern) => Some(pattern.fits(family, name)),
        Expression::Inside(_)
        | Expression::Anywhere(_)
        | Expression::Exists(_)
        | Expression::Test(..) => None,
        Expression::Not(inner) => of(inner).map(|matches| !matches),
        Expression::All(parts) => decided(parts.iter().map(of), false),
        Expression::Any(parts) => decided(parts.iter().map(of), true),
    }
}

/// The result of a list of conditions. A single `decisive` one decides it.
fn decided(parts: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part {
            Some(result) if result == decisive => return Some(decisive),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_as_far_as_they_can() {
        for (filter, expected) in [
            ("auth.PingRequest", Some(true)),
            ("PingRequest", Some(true)),
            ("uru", Some(true)),
            ("auth.* and not *Reply", Some(true)),
            ("PingReply", Some(false)),
            ("PingReply and transId == 1", Some(false)),
            ("PingRequest and transId == 1", None),
            ("PingReply or transId == 1", None),
            ("PingRequest or transId == 1", Some(true)),
            ("not PingRequest or not transId == 1", None),
            ("any contains \"x\"", None),
            ("exists(transId)", None),
        ] {
            let parsed = Filter::parse(filter).unwrap();
            assert_eq!(parsed.by_name("uru", "auth.PingRequest"), expected, "{filter}");
        }
    }
}
