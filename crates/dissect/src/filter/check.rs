//! Checks the names and values in a filter before it is used.

use super::Filter;
use super::fields::{UnknownField, is_inner};
use super::resolve::Resolver;

impl Filter {
    /// Checks a [resolved](Self::resolve) filter. Passes names and values to `remark` that may be
    /// wrong: no definition has them, but not all definitions may be known.
    ///
    /// # Errors
    /// One line about a message, field or value that cannot exist.
    pub fn check(
        &self,
        resolver: &Resolver<'_>,
        remark: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        let definitions = resolver.definitions();
        if let Some((name, near)) = self.unknown_names(resolver).into_iter().next() {
            let mut families = definitions.families().iter();
            let advice =
                families.find_map(|family| family.vocabulary().advice_on(name, definitions));
            let hint = match near {
                _ if Self::is_field(name, resolver) => {
                    return Err(format!(
                        "`{name}` is a field: write `exists({name})` or `fields.{name}`"
                    ));
                }
                _ if is_inner(name, &resolver.known().messages) => {
                    return Err(format!(
                        "`{name}` is a nested field: write `exists({name})`, or compare it"
                    ));
                }
                near if let Some(advice) = advice => match near {
                    Some(near) => format!("; did you mean `{near}`? If not, {advice}"),
                    None => format!("; {advice}"),
                },
                Some(near) => format!("; did you mean `{near}`?"),
                None => {
                    "; `worldwire codecs NAME` lists messages, and `*` matches anything".to_owned()
                }
            };
            return Err(format!("there is no message named `{name}`{hint}"));
        }
        for (pattern, near) in self.unknown_patterns(resolver) {
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            remark(&format!("no known message matches `{pattern}`{hint}"));
        }
        for field in self.unknown_fields(resolver) {
            let UnknownField { name, nearest, is_certain } = field;
            let hint = nearest.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            if is_certain {
                return Err(format!("no matching message has a field `{name}`{hint}"));
            }
            remark(&format!("unknown field `{name}`{hint}"));
        }
        if self.metadata_names().contains(&"time") {
            remark(
                "`time` is now called `elapsed`; to compare the `time` of JSON lines, use `date`",
            );
        }
        for value in self.unknown_values(resolver) {
            if value.is_certain {
                return Err(value.to_string());
            }
            remark(&value.to_string());
        }
        Ok(())
    }
}
