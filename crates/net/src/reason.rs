//! Errors of the operating system, as text for people.

use std::io;

/// The system's message for an error, without its number: `connection refused`.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_left_out() {
        let system = io::Error::from_raw_os_error(2);
        assert!(system.to_string().contains("(os error 2)"), "{system}");
        let reason_without = reason(&system);
        assert!(!reason_without.contains("os error") && !reason_without.is_empty());
        assert_eq!(reason(&io::Error::other("Not from the system")), "Not from the system");
    }
}
