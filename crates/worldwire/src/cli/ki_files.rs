//! The command line of `worldwire ki nav`, `bcd`, `poi`, `lang` and `files`, for the client's
//! files.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Target;

/// Selects files of a format.
#[derive(Debug, Args)]
pub(crate) struct KiPaths {
    /// Files, archives or directories
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

/// Converts one file to another format.
#[derive(Debug, Args)]
pub(crate) struct KiConversion {
    /// File, possibly as ARCHIVE/NAME, or an archive or directory that contains one
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Selects two lists to compare.
#[derive(Debug, Args)]
pub(crate) struct KiListDiff {
    /// Earlier list
    pub(crate) before: PathBuf,
    /// Later list
    pub(crate) after: PathBuf,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiNav {
    /// Report duplicate IDs, links to missing nodes, and other oddities
    #[command(after_help = "Examples:
  worldwire ki nav check samples/ki-zone.wad
  worldwire ki nav check GameData/")]
    Check(KiPaths),
    /// Draw a graph from above, as SVG
    #[command(after_help = "Examples:
  worldwire ki nav draw WizardCity-WC_Hub.wad -o hub.svg
  worldwire ki nav draw samples/ki-zone.wad -o zone.svg")]
    Draw(KiConversion),
    /// Find the shortest path between two nodes
    #[command(after_help = "Examples:
  worldwire ki nav route samples/ki-zone.wad 0 3
  worldwire ki nav route samples/ki-zonemap.nav MadeUp/MU_Hub OT_Hub

Paths within a zone are compared by distance, and paths between zones by number of links. The last part
of a zone's name is enough.")]
    Route {
        /// File, possibly as ARCHIVE/NAME, or an archive or directory that contains one
        path: PathBuf,
        /// Start: an ID, or the name of a zone
        from: String,
        /// Destination: an ID, or the name of a zone
        to: String,
        /// Follow links in both directions
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
        /// File, possibly as ARCHIVE/NAME, or an archive or directory that contains one
        path: PathBuf,
        /// Write undirected links
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiBcd {
    /// Report non-finite numbers, faces with missing vertices, and other oddities
    #[command(after_help = "Examples:
  worldwire ki bcd check samples/ki-zone.wad
  worldwire ki bcd check GameData/")]
    Check(KiPaths),
    /// Count collisions by type, category and material
    #[command(after_help = "Example:
  worldwire ki bcd stats samples/ki-zone.wad")]
    Stats {
        /// Files, archives or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Draw collisions from above, as SVG
    #[command(after_help = "Example:
  worldwire ki bcd draw WizardCity-WC_Hub.wad -o hub.svg")]
    Draw(KiConversion),
    /// Write collisions as a 3D file
    #[command(after_help = "Examples:
  worldwire ki bcd export WizardCity-WC_Hub.wad -o hub.gltf
  worldwire ki bcd export samples/ki-zone.wad -o zone.obj

In the output, y is up. Rays and planes are left out.")]
    Export {
        /// File, possibly as ARCHIVE/NAME, or an archive or directory that contains one
        path: PathBuf,
        /// Output format [default: that of the output file's extension, otherwise glTF]
        #[arg(long, value_name = "FORM")]
        to: Option<KiMeshForm>,
        #[command(flatten)]
        target: Target,
    },
}

/// Forms of 3D files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiMeshForm {
    /// glTF 2.0 in one file, with the material and flags of each collision
    Gltf,
    /// Wavefront OBJ
    Obj,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiPoi {
    /// Report unknown zones, duplicate goals and other oddities
    #[command(after_help = "Example:
  worldwire ki poi check samples/ki-zone.wad")]
    Check(KiPaths),
    /// Write the goals as CSV: zone, place, IDs
    #[command(after_help = "Example:
  worldwire ki poi csv Root.wad -o goals.csv")]
    Csv(KiConversion),
    /// Write teleporter connections between zones as GraphML
    #[command(after_help = "Example:
  worldwire ki poi graphml Root.wad -o teleporters.graphml")]
    Graphml(KiConversion),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiLang {
    /// Find text that contains a string, ignoring case
    #[command(after_help = "Examples:
  worldwire ki lang find commons Root.wad
  worldwire ki lang find Zone_0000 Locale/English/ --json")]
    Find {
        /// String to find in text, codes and comments; can also be the last argument
        text: String,
        /// Locale files, archives or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Show the text for codes
    #[command(after_help = "Example:
  worldwire ki lang text Items_31939071 --lang Root.wad")]
    Text {
        /// Codes: locale file name, underscore, key
        #[arg(required = true)]
        codes: Vec<String>,
        #[command(flatten)]
        lang: KiLangSource,
    },
    /// Print a text file and explain the codes in it
    #[command(after_help = "Example:
  worldwire ki op decode Root.wad --types types.json | worldwire ki lang explain --lang Root.wad")]
    Explain {
        /// File with any text, such as JSON; - is standard input [default: -]
        file: Option<PathBuf>,
        #[command(flatten)]
        lang: KiLangSource,
    },
    /// Report damaged files, duplicate keys and references to missing text
    #[command(after_help = "Example:
  worldwire ki lang check Root.wad")]
    Check(KiPaths),
    /// Write text as CSV: code, comment, text
    #[command(after_help = "Example:
  worldwire ki lang csv Locale/English/ -o english.csv")]
    Csv {
        /// Locale files, archives or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Write text as PO for translators, with codes as contexts
    #[command(after_help = "Examples:
  worldwire ki lang po Locale/English/ -o game.po
  worldwire ki lang po Locale/English/ --translation Locale/German/ -o german.po")]
    Po {
        /// Locale files, archives or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Files in another language whose text becomes the translations
        #[arg(long, value_name = "PATH")]
        translation: Vec<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
}

/// The source of localised text.
#[derive(Debug, Args)]
pub(crate) struct KiLangSource {
    /// Locale files, archives or directories that contain the text
    #[arg(long = "lang", value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiFiles {
    /// List all files of a revision by name
    #[command(after_help = "Examples:
  worldwire ki files list samples/ki-files.bin
  worldwire ki files list LatestFileList.bin --prefix http://patch.example/r1 --folder Wizard101/

With --folder, each file is marked as current, different or missing, based on its size and CRC.")]
    List {
        /// LatestFileList as binary, XML, JSON or CSV; - is standard input
        list: PathBuf,
        /// Print URLs with this prefix
        #[arg(long, value_name = "URL")]
        prefix: Option<String>,
        /// Compare with the files in this directory
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Compare the files of two revisions
    #[command(after_help = "Example:
  worldwire ki files diff old/LatestFileList.bin new/LatestFileList.bin

The exit code is 1 if the revisions differ.")]
    Diff(KiListDiff),
    /// Print the URLs of a revision, one per line
    #[command(after_help = "Examples:
  worldwire ki files urls LatestFileList.bin --prefix http://patch.example/r1
  worldwire ki files urls LatestFileList.bin --prefix http://patch.example/r1 --folder Wizard101/

With --folder, only the URLs of different or missing files are printed.")]
    Urls {
        /// LatestFileList as binary, XML, JSON or CSV; - is standard input
        list: PathBuf,
        /// URL prefix for the names
        #[arg(long, value_name = "URL")]
        prefix: String,
        /// Skip files that are current in this directory
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiTypesAction {
    /// Merge type lists into one, in the format that other programs use
    #[command(after_help = "Examples:
  worldwire ki op types convert old.json -o types.json
  worldwire ki op types convert a.json b.json --list-version 1 -o merged.json")]
    Convert {
        /// Type lists; later ones override earlier ones
        #[arg(required = true)]
        lists: Vec<PathBuf>,
        /// Version of the format: 2 stores classes by hash, 1 by name
        #[arg(long, value_name = "NUMBER", default_value_t = 2,
              value_parser = clap::value_parser!(u8).range(1..=2))]
        list_version: u8,
        #[command(flatten)]
        target: Target,
    },
    /// Compare two type lists, ignoring memory offsets
    #[command(after_help = "Example:
  worldwire ki op types diff old.json new.json

The exit code is 1 if the lists differ.")]
    Diff(KiListDiff),
}
