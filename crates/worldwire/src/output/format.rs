//! The format that the name of an output file selects.

use std::path::Path;

use super::{Failure, printable, shown};

/// A format of results about a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Text, or any format that the options select; the name does not decide.
    Any,
    /// Packets, as a capture.
    Capture(CaptureFormat),
    /// A table, as CSV or separated by tabs.
    Table { is_csv: bool },
    /// JSON lines.
    Json,
}

/// A format of capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaptureFormat {
    /// Whether it is pcapng rather than pcap.
    pub(crate) is_pcapng: bool,
    pub(crate) is_gzip: bool,
}

/// Extensions of formats that are not supported. Any other extension has no influence on the
/// format.
const REFUSED: [&str; 20] = [
    "7z", "bz2", "cap", "dmp", "erf", "gz", "html", "ods", "parquet", "pdf", "snoop", "sqlite",
    "svg", "xls", "xlsx", "xml", "xz", "yaml", "zip", "zst",
];

impl OutputFormat {
    /// The format for this name, ignoring case.
    ///
    /// # Errors
    /// If the extension promises a format that is not supported.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let plain = name.strip_suffix(".gz");
        let is_gzip = plain.is_some();
        let end = plain.unwrap_or(&name).rsplit_once('.').map_or("", |(_, end)| end);
        Ok(match (end, is_gzip) {
            ("pcapng" | "pcap", _) => {
                Self::Capture(CaptureFormat { is_pcapng: end == "pcapng", is_gzip })
            }
            ("csv", false) => Self::Table { is_csv: true },
            ("tsv", false) => Self::Table { is_csv: false },
            ("json" | "jsonl" | "ndjson", false) => Self::Json,
            (end, is_gzip) if is_gzip || REFUSED.contains(&end) => {
                let end = if is_gzip { format!("{end}.gz") } else { end.to_owned() };
                let end = end.trim_start_matches('.');
                let (path, end) = (shown(path), printable(end));
                return Err(Failure::Run(format!(
                    "{path}: cannot write .{end} files; use .txt, .json, .csv, .tsv, .pcapng or \
                     .pcap, the last two also with .gz"
                )));
            }
            _ => Self::Any,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_the_format() {
        let capture =
            |is_pcapng, is_gzip| OutputFormat::Capture(CaptureFormat { is_pcapng, is_gzip });
        for (name, expected) in [
            ("a.pcapng", capture(true, false)),
            ("A.PCAPNG", capture(true, false)),
            ("x/a.b.pcapng.gz", capture(true, true)),
            ("a.pcap", capture(false, false)),
            ("a.Pcap.GZ", capture(false, true)),
            ("a.csv", OutputFormat::Table { is_csv: true }),
            ("a.tsv", OutputFormat::Table { is_csv: false }),
            ("a.JSON", OutputFormat::Json),
            ("a.jsonl", OutputFormat::Json),
            ("a.txt", OutputFormat::Any),
            ("a", OutputFormat::Any),
            ("pcapng", OutputFormat::Any),
            ("a.bin", OutputFormat::Any),
            ("/dev/null", OutputFormat::Any),
            ("-", OutputFormat::Any),
        ] {
            assert_eq!(OutputFormat::of(Path::new(name)).ok(), Some(expected), "{name}");
        }
        for name in ["a.gz", "a.json.gz", "a.cap", "a.XLSX", "a.pcapng.zst"] {
            let Err(Failure::Run(why)) = OutputFormat::of(Path::new(name)) else {
                panic!("{name}")
            };
            assert!(why.contains("files; use .txt"), "{why}");
        }
    }
}
