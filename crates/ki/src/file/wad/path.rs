//! Checking names that become file paths.

use worldwire_core::{Error, Result};

/// Device names on Windows, whatever the extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// The maximum length of a path in bytes: Linux opens no longer ones, and the limit on Windows is
/// usually much shorter.
const MAX_BYTES: usize = 4_095;
/// The maximum number of parts in a path. Each becomes a folder, so a few names with thousands of
/// parts would take far more memory than they have bytes.
const MAX_PARTS: usize = 128;

/// The name of an entry as a path below a target folder: parts separated by `/`.
///
/// # Errors
/// Malformed, for everything that could escape the folder on any system: absolute paths, empty
/// parts, `.` and `..`, drives and streams (`:`), backslashes, control characters, device names,
/// parts that end with a dot or a space, and bytes that are not UTF-8; also for more than 4,095
/// bytes or 128 parts.
pub fn safe_path(name: &[u8]) -> Result<&str> {
    let Ok(text) = core::str::from_utf8(name) else {
        let found = String::from_utf8_lossy(name).into_owned();
        return Err(Error::malformed("a path in UTF-8", "other bytes").about(found));
    };
    let parts = text.split('/').count();
    if text.len() > MAX_BYTES || parts > MAX_PARTS {
        let wanted = format!("a path of at most {MAX_BYTES} bytes and {MAX_PARTS} parts");
        let found = format!("{} bytes and {parts} parts", text.len());
        return Err(Error::malformed(wanted, found).about(text.to_owned()));
    }
    match text.split('/').find_map(fault) {
        None => Ok(text),
        Some(found) => {
            Err(Error::malformed("a path below the target directory", found).about(text.to_owned()))
        }
    }
}

fn fault(part: &str) -> Option<&'static str> {
    if part.is_empty() {
        return Some("an absolute path or an empty part");
    }
    if part == "." || part == ".." {
        return Some("a `.` or `..`");
    }
    if part.contains(['\\', ':']) {
        return Some("a backslash or a drive");
    }
    if part.contains(char::is_control) {
        return Some("a control character");
    }
    if part.contains(['<', '>', '"', '|', '?', '*']) {
        return Some("a character that Windows does not allow");
    }
    if part.ends_with(['.', ' ']) {
        return Some("a dot or space at the end of a part");
    }
    let stem = part.split('.').next().unwrap_or(part).trim_end();
    is_device(stem).then_some("a device name")
}

fn is_device(stem: &str) -> bool {
    let port = |prefix: &str| {
        let head = stem.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
        let mut rest = stem.get(3..).unwrap_or_default().chars();
        let number = rest.next().is_some_and(|c| matches!(c, '1'..='9' | '¹' | '²' | '³'));
        head && number && rest.next().is_none()
    };
    DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) || port("COM") || port("LPT")
}

#[cfg(test)]
mod tests {
    use super::safe_path;

    #[test]
    fn paths_that_escape_the_folder_are_refused() {
        for bad in [
            "",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "./a",
            "C:/a",
            "a:b",
            "a\\b",
            "a\0b",
            "con",
            "a/NUL.txt",
            "com1",
            "LPT9.x",
            "COM¹",
            "a. ",
            "a./b",
            "a\nb",
            "a?",
        ] {
            assert!(safe_path(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for good in ["a", "Data/Ω.txt", "..a", "a..b", "console.txt", "COM10", "com", "a b/c d"] {
            assert_eq!(safe_path(good.as_bytes()).unwrap(), good);
        }
        assert!(safe_path(b"a\xff").is_err());
        assert!(safe_path("a".repeat(4_095).as_bytes()).is_ok());
        assert!(safe_path("a".repeat(4_096).as_bytes()).is_err());
        assert!(safe_path("a/".repeat(127).as_bytes()[..253].as_ref()).is_ok());
        let error = safe_path(&"a/".repeat(129).as_bytes()[..257]).unwrap_err();
        assert_eq!(error.found(), "257 bytes and 129 parts");
    }
}
