//! Chooses the output format from the options, the name of the output file and the settings.

use worldwire_core::text::TextStyle;
use worldwire_dissect::filter::{Filter, Resolver, Subject};
use worldwire_dissect::{Definitions, Format, TextForm, Time};

use crate::cli::{Common, Dissect, Target, TimeForm, View};
use crate::command::lines::NUMBER_WIDTH;
use crate::command::selection::Shown;
use crate::command::time::delta;
use crate::output::{CaptureFormat, Failure, OutputFormat, shown, terminal_width};
use crate::settings::{ColorRule, Paint, Setting};

/// The format implied by the output file's name, and the options, including those that the name
/// implies.
pub(super) fn named_format(
    arguments: &Dissect,
    common: &Common,
) -> Result<(OutputFormat, View), Failure> {
    let mut view = arguments.view.clone();
    let path = arguments.target.output.as_deref();
    let format = match path.map_or(Ok(OutputFormat::Any), OutputFormat::of) {
        // The bytes of a message can be in any format.
        Err(_) if view.message().is_some() => OutputFormat::Any,
        format => format?,
    };
    let has_times = matches!(format, OutputFormat::Json | OutputFormat::Capture(_));
    if view.json.style().is_some() || has_times && common.settings.is_used(Setting::Time) {
        // JSON lines and packets contain times of their own.
        view.time = TimeForm::Relative;
    }
    if view.table || view.fields.is_empty() && matches!(format, OutputFormat::Table { .. }) {
        view.fields = common.settings.texts(Setting::Columns);
        if view.table && view.fields.is_empty() {
            let hint = "list fields as `columns` in worldwire.toml, or use --fields";
            return Err(Failure::Run(format!("--table: the settings have no columns; {hint}")));
        }
    }
    let refuse = |why: &str| {
        let path = path.map(shown).unwrap_or_default();
        Err(Failure::Run(format!("-o {path}: {why}")))
    };
    let View { brief, names, bytes, full, csv, time, .. } = view;
    let is_text = brief || names || bytes || full || time != TimeForm::Relative;
    let (is_table, is_json) = (!view.fields.is_empty(), view.json.style().is_some());
    match format {
        OutputFormat::Any => {}
        OutputFormat::Capture(_) if is_text || is_table || is_json || view.message().is_some() => {
            return refuse("a capture holds packets; use another extension for messages");
        }
        OutputFormat::Capture(_) if view.limit.is_some() || view.last.is_some() => {
            return refuse("a capture holds conversations; --limit and --last select messages");
        }
        OutputFormat::Capture(_) => {}
        OutputFormat::Table { .. } if !is_table => {
            return refuse("a table needs columns; choose them with --fields");
        }
        OutputFormat::Table { is_csv: false } if csv => {
            return refuse("--csv separates columns with commas; use the extension .csv");
        }
        OutputFormat::Table { is_csv } => view.csv = is_csv,
        OutputFormat::Json if is_text || is_table => {
            return refuse("JSON lines hold all fields; use another extension for text and tables");
        }
        OutputFormat::Json => view.json.json |= !is_json,
    }
    if arguments.secrets
        && !matches!(format, OutputFormat::Capture(CaptureFormat { is_pcapng: true, .. }))
    {
        return Err(Failure::Run(
            "--secrets stores keys in a capture, so it needs -o NAME.pcapng".to_owned(),
        ));
    }
    Ok((format, view))
}

/// A colour rule of the settings.
pub(super) struct PaintRule {
    filter: Filter,
    /// How to show the selected items.
    pub(super) color: Paint,
}

impl PaintRule {
    /// Whether it applies to a message or note.
    pub(super) fn matches(&self, shown: &Shown<'_, '_>) -> bool {
        self.filter.matches(&Subject::of(shown.item, shown.name, shown.tree))
    }
}

/// The colour rules, if the output is coloured. Rules for families other than the one at hand are
/// normal, so unknown names in them are not reported.
pub(super) fn paints(
    format: &Format,
    definitions: &Definitions,
    common: &Common,
) -> Result<Vec<PaintRule>, Failure> {
    if !matches!(format, Format::Text { style, .. } if style.colour) {
        return Ok(Vec::new());
    }
    let resolver = Resolver::new(definitions);
    let read = |rule: &ColorRule| {
        let filter =
            Filter::parse(&rule.filter).map_err(|error| Failure::Run(error.to_string()))?;
        Ok(PaintRule { filter: filter.resolve(&resolver), color: rule.color })
    };
    common.settings.colors.iter().map(read).collect()
}

/// The same format without colours.
pub(super) fn plain(format: Format) -> Format {
    match format {
        Format::Text { form, style, time } => {
            Format::Text { form, style: TextStyle { colour: false, ..style }, time }
        }
        other => other,
    }
}

/// The format that the options ask for.
pub(super) fn format(view: &View, target: &Target, common: &Common) -> Format {
    if let Some(style) = view.json.style() {
        return Format::Json(style);
    }
    let style = TextStyle {
        ranges: view.bytes,
        colour: common.colour(Some(target)),
        longest: if view.full { 0 } else { TextStyle::default().longest },
        ..TextStyle::default()
    };
    let form = match (view.brief, view.names) {
        (true, _) => {
            let width = match view.width {
                Some(width) => Some(width.into()),
                None => target.is_stdout().then(terminal_width).flatten(),
            };
            // The number, and the time since the previous line, are written later.
            let mut prefix = if view.numbers { NUMBER_WIDTH } else { 0 };
            if view.time == TimeForm::Delta {
                prefix += delta(None, Time(0)).len();
            }
            TextForm::Info { width: width.map(|width| width.saturating_sub(prefix)) }
        }
        (false, true) => TextForm::Name,
        (false, false) => TextForm::Fields,
    };
    Format::Text { form, style, time: view.time == TimeForm::Relative }
}

impl View {
    /// The number of the message to extract.
    pub(super) fn message(&self) -> Option<u64> {
        self.message.or_else(|| self.first.then_some(1))
    }
}
