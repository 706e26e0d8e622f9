//! A small generated archive.

use std::path::Path;

use worldwire_ki::file::wad::{BuildOptions, build};

use super::Outcome;

pub(super) fn write(folder: &Path) -> Outcome<()> {
    let records = "<Record>made up</Record>\n".repeat(40);
    let files = [
        ("Data/Records.xml", records.as_bytes()),
        ("Root.txt", b"Made by this project.\n"),
        ("Sound/Tone.ogg", &[0x55; 64]),
    ];
    let options = BuildOptions { flags: 1, ..BuildOptions::default() };
    std::fs::write(folder.join("ki-made-up.wad"), build(&options, files)?)?;
    let hostile = build(&options, [("../outside.txt", &b"nobody wants this\n"[..])])?;
    std::fs::write(folder.join("ki-hostile.wad"), hostile)?;
    Ok(())
}
