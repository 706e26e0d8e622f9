//! Directories and their contents.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::output::{Failure, reason, shown, unfinished};

/// The maximum number of entries below a directory. Links can reach the same directories along a
/// growing number of paths without ever forming a loop.
const MAX_FOUND: usize = 1 << 21;
/// The maximum number of links to directories that are followed, because resolving each takes time.
const MAX_LINKS: usize = 1 << 14;

/// A file, or all files in a directory and its subdirectories, sorted by name. Links are followed.
/// Skipped entries are reported: loops, dangling links, leftovers of interrupted runs, and special
/// files, such as FIFOs that would block.
pub(crate) fn files(path: &Path, tell: &dyn Fn(&str, &str)) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = found(path, tell)?;
    files.retain(|(file, is_regular)| {
        if *is_regular {
            return true;
        }
        // Checks the target of a link. If it cannot be inspected, reading it reports the error.
        let why = match fs::metadata(file) {
            Ok(about) if !about.is_file() => "is not a regular file; skipped".to_owned(),
            Err(error) if error.kind() != ErrorKind::PermissionDenied => {
                format!("is a dangling link ({}); skipped", reason(&error))
            }
            _ => return true,
        };
        tell(&shown(file), &why);
        false
    });
    Ok(files.into_iter().map(|(file, _)| file).collect())
}

/// Everything in a directory except subdirectories. Loops and leftovers of interrupted runs are
/// skipped and reported.
pub(crate) fn all(path: &Path, tell: &dyn Fn(&str, &str)) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    Ok(found(path, tell)?.into_iter().map(|(file, _)| file).collect())
}

fn found(path: &Path, tell: &dyn Fn(&str, &str)) -> Result<Vec<Found>, Failure> {
    let (files, passed) = walk(path, MAX_FOUND)?;
    for (path, why) in passed {
        tell(&shown(&path), &why);
    }
    Ok(files)
}

/// A pending step of the walk.
enum Step {
    /// List a directory; the second path has its links resolved.
    Enter(PathBuf, PathBuf),
    /// Leave a directory that has been listed completely.
    Leave(PathBuf),
}

/// An entry of a directory, and whether it is a regular file rather than a link.
type Found = (PathBuf, bool);
/// A skipped entry, and why.
type Passed = (PathBuf, String);

fn walk(path: &Path, most: usize) -> Result<(Vec<Found>, Vec<Passed>), Failure> {
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| Failure::io(path, &error));
    let (mut files, mut passed) = (Vec::new(), Vec::new());
    let (mut count, mut links) = (0, 0);
    // The parents of the current directory.
    let mut above = HashSet::new();
    let mut steps = vec![Step::Enter(path.to_owned(), real(path)?)];
    while let Some(step) = steps.pop() {
        let (folder, own) = match step {
            Step::Enter(folder, own) => (folder, own),
            Step::Leave(own) => {
                above.remove(&own);
                continue;
            }
        };
        if !above.insert(own.clone()) {
            passed.push((folder, format!("links back to {}; skipped", shown(&own))));
            continue;
        }
        steps.push(Step::Leave(own.clone()));
        let fail = |error| Failure::io(&folder, &error);
        for entry in fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            count += 1;
            if count > most {
                let what =
                    "files and directories, including those reached through links (files found)";
                return Err(Failure::Run(format!("{}: more than {most} {what}", shown(path))));
            }
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| Failure::io(&path, &error))?;
            if let Some(why) = unfinished(&entry.file_name(), kind.is_dir()) {
                passed.push((path, why.to_owned()));
            } else if kind.is_dir() {
                steps.push(Step::Enter(path, own.join(entry.file_name())));
            } else if kind.is_symlink() && path.is_dir() {
                links += 1;
                if links > MAX_LINKS {
                    let what = "links to directories, including nested ones (links followed)";
                    let home = shown(&folder);
                    return Err(Failure::Run(format!("{home}: more than {MAX_LINKS} {what}")));
                }
                let own = real(&path)?;
                steps.push(Step::Enter(path, own));
            } else {
                files.push((path, kind.is_file()));
            }
        }
    }
    files.sort();
    passed.sort();
    Ok((files, passed))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::walk;

    fn paths(files: &[(PathBuf, bool)]) -> Vec<PathBuf> {
        files.iter().map(|(path, _)| path.clone()).collect()
    }

    fn below(folder: &Path, files: &[PathBuf]) -> Vec<String> {
        let name = |file: &PathBuf| {
            file.strip_prefix(folder).expect("below").to_string_lossy().replace('\\', "/")
        };
        files.iter().map(name).collect()
    }

    #[test]
    fn deep_directories_are_walked() {
        let home = tempfile::tempdir().expect("a directory");
        let deep = home.path().join("a/".repeat(60));
        fs::create_dir_all(&deep).expect("directories");
        fs::write(deep.join("file"), "").expect("a file");
        let (files, loops) = walk(home.path(), 100).expect("files");
        assert_eq!(below(home.path(), &paths(&files)), ["a/".repeat(60) + "file"]);
        assert!(loops.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn loops_are_skipped_and_webs_of_links_end() {
        use std::os::unix::fs::symlink;

        let home = tempfile::tempdir().expect("a directory");
        let home = fs::canonicalize(home.path()).expect("a path");
        for folder in ["r/a/b", "r/c"] {
            fs::create_dir_all(home.join(folder)).expect("directories");
        }
        fs::write(home.join("r/a/b/file"), "").expect("a file");
        for (to, link) in
            [("..", "r/a/up"), (".", "r/self"), (".", "r/self2"), ("../..", "r/c/out")]
        {
            symlink(to, home.join(link)).expect("a link");
        }
        // Not a loop: another path to the same directory.
        symlink("../a/b", home.join("r/c/again")).expect("a link");
        let (files, loops) = walk(&home.join("r"), 100).expect("files");
        assert_eq!(below(&home, &paths(&files)), ["r/a/b/file", "r/c/again/file"]);
        let folders: Vec<PathBuf> = loops.iter().map(|(folder, _)| folder.clone()).collect();
        assert_eq!(below(&home, &folders), ["r/a/up", "r/c/out/r", "r/self", "r/self2"]);

        let web = home.join("web");
        fs::create_dir_all(web.join("0")).expect("directories");
        for number in 1..20 {
            let folder = web.join(number.to_string());
            fs::create_dir(&folder).expect("a directory");
            for way in ["x", "y"] {
                symlink(format!("../{}", number - 1), folder.join(way)).expect("a link");
            }
        }
        let message = format!("{:?}", walk(&web, 1000).expect_err("endless ways"));
        assert!(message.contains("more than 1000 files"), "{message}");
    }
}
