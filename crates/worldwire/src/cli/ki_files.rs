//! The command line of `worldwire ki nav`, `bcd`, `poi`, `lang` and `files`: the client's own files.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Target;

#[derive(Debug, Subcommand)]
pub(crate) enum KiNav {
    /// Report links to missing nodes, repeated ids and other oddities
    #[command(after_help = "Examples:
  worldwire ki nav check samples/ki-zone.wad
  worldwire ki nav check GameData/")]
    Check {
        /// Files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Draw a graph from above, as SVG
    #[command(after_help = "Examples:
  worldwire ki nav draw WizardCity-WC_Hub.wad -o hub.svg
  worldwire ki nav draw samples/ki-zone.wad -o zone.svg")]
    Draw {
        /// A NAV file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Find the shortest way between two nodes
    #[command(after_help = "Examples:
  worldwire ki nav route samples/ki-zone.wad 0 3
  worldwire ki nav route samples/ki-zonemap.nav MadeUp/MU_Hub OT_Hub

Of places in a zone the way is shortest by distance, of zones by the number of links. A zone may be
given by the last part of its name.")]
    Route {
        /// A NAV file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        /// Where it begins: an id, or the name of a zone
        from: String,
        /// Where it ends
        to: String,
        /// Use links in both directions
        #[arg(long)]
        both: bool,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Write a graph as GraphML, for Gephi, yEd and NetworkX
    #[command(after_help = "Example:
  worldwire ki nav graphml Root.wad -o zones.graphml")]
    Graphml {
        /// A NAV file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        /// Write links without a direction
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiBcd {
    /// Report faces with missing vertices, numbers that are not finite, and other oddities
    #[command(after_help = "Examples:
  worldwire ki bcd check samples/ki-zone.wad
  worldwire ki bcd check GameData/")]
    Check {
        /// Files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Count collisions by type, category and material
    #[command(after_help = "Example:
  worldwire ki bcd stats samples/ki-zone.wad")]
    Stats {
        /// Files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Draw collisions from above, as SVG
    #[command(after_help = "Example:
  worldwire ki bcd draw WizardCity-WC_Hub.wad -o hub.svg")]
    Draw {
        /// A BCD file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Write collisions as a 3D file
    #[command(after_help = "Examples:
  worldwire ki bcd export WizardCity-WC_Hub.wad -o hub.gltf
  worldwire ki bcd export samples/ki-zone.wad -o zone.obj

y is up. Rays and planes are left out.")]
    Export {
        /// A BCD file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        /// The output format; without it, OBJ for an output file that ends with .obj, and glTF for
        /// .gltf or no ending
        #[arg(long, value_name = "FORM")]
        to: Option<KiMeshForm>,
        #[command(flatten)]
        target: Target,
    },
}

/// Forms of 3D files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiMeshForm {
    /// glTF 2.0 in one file, with material and flags of each collision
    Gltf,
    /// Wavefront OBJ
    Obj,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiPoi {
    /// Report unknown zones, repeated goals and other oddities
    #[command(after_help = "Example:
  worldwire ki poi check samples/ki-zone.wad")]
    Check {
        /// Files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Write the goals as CSV: zone, place, ids
    #[command(after_help = "Example:
  worldwire ki poi csv Root.wad -o goals.csv")]
    Csv {
        /// A POI file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Write as GraphML which zones teleporters lead to
    #[command(after_help = "Example:
  worldwire ki poi graphml Root.wad -o teleporters.graphml")]
    Graphml {
        /// A POI file, also as ARCHIVE/NAME, or an archive or directory with one
        path: PathBuf,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiLang {
    /// Find texts that contain something, in any case
    #[command(after_help = "Examples:
  worldwire ki lang find commons Root.wad
  worldwire ki lang find Zone_0000 Locale/English/ --json")]
    Find {
        /// What to find in a text, code or comment
        text: String,
        /// Locale files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Show the texts of codes
    #[command(after_help = "Example:
  worldwire ki lang text Items_31939071 --lang Root.wad")]
    Text {
        /// Codes: the name of a locale file, _, and a key
        #[arg(required = true)]
        codes: Vec<String>,
        #[command(flatten)]
        lang: KiLangSource,
    },
    /// Show lines of text, with the texts of the codes in them
    #[command(after_help = "Example:
  worldwire ki op decode Root.wad --types types.json | worldwire ki lang explain --lang Root.wad")]
    Explain {
        /// Any text, such as JSON; - or no file is standard input
        file: Option<PathBuf>,
        #[command(flatten)]
        lang: KiLangSource,
    },
    /// Report damaged files, repeated keys, and references to missing texts
    #[command(after_help = "Example:
  worldwire ki lang check Root.wad")]
    Check {
        /// Locale files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Write texts as CSV: code, comment, text
    #[command(after_help = "Example:
  worldwire ki lang csv Locale/English/ -o english.csv")]
    Csv {
        /// Locale files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Write texts as PO, for translators: the code is the context
    #[command(after_help = "Examples:
  worldwire ki lang po Locale/English/ -o game.po
  worldwire ki lang po Locale/English/ --translation Locale/German/ -o german.po")]
    Po {
        /// Locale files, archives, directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Files of another language, whose texts become the translations
        #[arg(long, value_name = "PATH")]
        translation: Vec<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
}

/// Where texts come from.
#[derive(Debug, Args)]
pub(crate) struct KiLangSource {
    /// Locale files, archives and directories with the texts
    #[arg(long = "lang", value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiFiles {
    /// List all files of a revision, by name
    #[command(after_help = "Examples:
  worldwire ki files list samples/ki-files.bin
  worldwire ki files list LatestFileList.bin --prefix http://patch.example/r1 --folder Wizard101/

With --folder, each file is current, different or missing there; size and CRC decide.")]
    List {
        /// LatestFileList as binary, XML, JSON or CSV; - is standard input
        list: PathBuf,
        /// Show URLs below this prefix
        #[arg(long, value_name = "URL")]
        prefix: Option<String>,
        /// Compare with the files of this directory
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Compare the files of two revisions
    #[command(after_help = "Example:
  worldwire ki files diff old/LatestFileList.bin new/LatestFileList.bin

Exits with 1 if they differ.")]
    Diff {
        /// The earlier list
        before: PathBuf,
        /// The later list
        after: PathBuf,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Print the URLs of a revision, one per line
    #[command(after_help = "Examples:
  worldwire ki files urls LatestFileList.bin --prefix http://patch.example/r1
  worldwire ki files urls LatestFileList.bin --prefix http://patch.example/r1 --folder Wizard101/

With --folder, only of files that are different or missing there.")]
    Urls {
        /// LatestFileList as binary, XML, JSON or CSV; - is standard input
        list: PathBuf,
        /// What stands in front of the names
        #[arg(long, value_name = "URL")]
        prefix: String,
        /// Leave out what this directory has already
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiTypesAction {
    /// Write type lists as one list, in the form that other programs read
    #[command(after_help = "Examples:
  worldwire ki op types convert old.json -o types.json
  worldwire ki op types convert a.json b.json --list-version 1 -o merged.json")]
    Convert {
        /// Type lists; later ones override earlier ones
        #[arg(required = true)]
        lists: Vec<PathBuf>,
        /// Version 2 has classes by hash, version 1 by name
        #[arg(long, value_name = "NUMBER", default_value_t = 2,
              value_parser = clap::value_parser!(u8).range(1..=2))]
        list_version: u8,
        #[command(flatten)]
        target: Target,
    },
    /// Compare two type lists, without offsets in memory
    #[command(after_help = "Example:
  worldwire ki op types diff old.json new.json

Exits with 1 if they differ.")]
    Diff {
        /// The earlier list
        before: PathBuf,
        /// The later list
        after: PathBuf,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
}
