//! Generated definitions with the size and shape of a real client's: 29 files, 1,446 messages,
//! 4,311 fields.

use std::fmt::Write as _;

use worldwire_core::Sampler;

/// The number of files.
pub(crate) const FILES: usize = 29;
/// The number of messages.
pub(crate) const MESSAGES: usize = 1446;
/// The number of fields by type.
pub(crate) const FIELDS: [(&str, usize); 9] = [
    ("GID", 1193),
    ("STR", 911),
    ("UINT", 740),
    ("INT", 530),
    ("UBYT", 459),
    ("FLT", 241),
    ("BYT", 172),
    ("WSTR", 38),
    ("USHRT", 27),
];

/// The names and texts of the files, always the same.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut sampler = Sampler::new(29);
    let mut below = |bound: usize| {
        let drawn = sampler.below(u64::try_from(bound).unwrap_or(u64::MAX));
        usize::try_from(drawn).unwrap_or(0)
    };
    let mut fields: Vec<Vec<&str>> = vec![Vec::new(); MESSAGES];
    let mut kinds: Vec<&str> =
        FIELDS.iter().flat_map(|(kind, count)| std::iter::repeat_n(*kind, *count)).collect();
    while !kinds.is_empty() {
        let kind = kinds.swap_remove(below(kinds.len()));
        fields[below(MESSAGES)].push(kind);
    }
    let mut messages = fields.iter().enumerate();
    (0..FILES)
        .map(|file| {
            // One file has the maximum number of messages; the others share the rest.
            let rest = MESSAGES - 255;
            let count = match file {
                0 => 255,
                _ => rest / (FILES - 1) + usize::from(file <= rest % (FILES - 1)),
            };
            let mut text = head(file);
            for (order, (number, fields)) in (1..=count).zip(&mut messages) {
                // Some files state the numbers of their messages; in others, messages are numbered
                // by tag.
                message(number, (file % 3 == 0).then_some(order), fields, &mut text);
            }
            let _ = writeln!(text, "</MadeUp{file}Messages>");
            (format!("MadeUp{file}Messages.xml"), text)
        })
        .collect()
}

fn head(file: usize) -> String {
    format!(
        "<?xml version=\"1.0\" ?>\n<MadeUp{file}Messages>\n  <_ProtocolInfo>\n    <RECORD>\n      \
         <ServiceID TYPE=\"UBYT\">{}</ServiceID>\n      \
         <ProtocolType TYPE=\"STR\">MADEUP{file}</ProtocolType>\n      \
         <ProtocolVersion TYPE=\"INT\">1</ProtocolVersion>\n      \
         <ProtocolDescription TYPE=\"STR\">Made-up messages {file}</ProtocolDescription>\n    \
         </RECORD>\n  </_ProtocolInfo>\n",
        file + 1
    )
}

fn message(number: usize, order: Option<usize>, fields: &[&str], text: &mut String) {
    // Scattered, so that there is something to sort. The factor is coprime to the modulus.
    let tag = format!("MSG_THING_{:04}", number * 7919 % 10_000);
    let _ = writeln!(text, "  <{tag}>\n    <RECORD>");
    let _ = writeln!(text, "      <_MsgName TYPE=\"STR\" NOXFER=\"TRUE\">{tag}</_MsgName>");
    let _ = writeln!(
        text,
        "      <_MsgDescription TYPE=\"STR\" NOXFER=\"TRUE\">Says thing {number}.</_MsgDescription>"
    );
    let _ = writeln!(text, "      <_MsgHandler TYPE=\"STR\" NOXFER=\"TRUE\">{tag}</_MsgHandler>");
    let _ = writeln!(text, "      <_MsgAccessLvl TYPE=\"UBYT\" NOXFER=\"TRUE\">1</_MsgAccessLvl>");
    if let Some(order) = order {
        let _ =
            writeln!(text, "      <_MsgOrder TYPE=\"UBYT\" NOXFER=\"TRUE\">{order}</_MsgOrder>");
    }
    for (index, kind) in fields.iter().enumerate() {
        let _ = writeln!(text, "      <Field{index} TYPE=\"{kind}\"></Field{index}>");
    }
    text.push_str("    </RECORD>\n  </");
    text.push_str(&tag);
    text.push_str(">\n");
}
