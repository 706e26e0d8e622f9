//! The page itself: a fixed list of embedded files. Requests cannot reach any other file.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::state::State;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file with its path and media type.
macro_rules! files {
    ($($path:literal, $kind:ident, $name:literal;)*) => {
        const FILES: &[(&str, &str, &str)] =
            &[$(($path, $kind, include_str!(concat!("../page/", $name)))),*];
    };
}

files! {
    "/", HTML, "index.html";
    "/page.css", CSS, "page.css";
    "/icon.svg", IMAGE, "icon.svg";
    "/api.js", SCRIPT, "api.js";
    "/breakpoints.js", SCRIPT, "breakpoints.js";
    "/bytes.js", SCRIPT, "bytes.js";
    "/compare.js", SCRIPT, "compare.js";
    "/completion.js", SCRIPT, "completion.js";
    "/conversations.js", SCRIPT, "conversations.js";
    "/copy.js", SCRIPT, "copy.js";
    "/dom.js", SCRIPT, "dom.js";
    "/drawing.js", SCRIPT, "drawing.js";
    "/export.js", SCRIPT, "export.js";
    "/fields.js", SCRIPT, "fields.js";
    "/filter.js", SCRIPT, "filter.js";
    "/form.js", SCRIPT, "form.js";
    "/format.js", SCRIPT, "format.js";
    "/json.js", SCRIPT, "json.js";
    "/lazy-tree.js", SCRIPT, "lazy-tree.js";
    "/main.js", SCRIPT, "main.js";
    "/menu.js", SCRIPT, "menu.js";
    "/messages.js", SCRIPT, "messages.js";
    "/notes.js", SCRIPT, "notes.js";
    "/object-editor.js", SCRIPT, "object-editor.js";
    "/object-form.js", SCRIPT, "object-form.js";
    "/object-value.js", SCRIPT, "object-value.js";
    "/paths.js", SCRIPT, "paths.js";
    "/restore.js", SCRIPT, "restore.js";
    "/rows.js", SCRIPT, "rows.js";
    "/search.js", SCRIPT, "search.js";
    "/server.js", SCRIPT, "server.js";
    "/splitters.js", SCRIPT, "splitters.js";
    "/store.js", SCRIPT, "store.js";
    "/timeline.js", SCRIPT, "timeline.js";
    "/worlds.js", SCRIPT, "worlds.js";
    "/worlds-ages.js", SCRIPT, "worlds-ages.js";
    "/worlds-ki.js", SCRIPT, "worlds-ki.js";
    "/worlds-mxo.js", SCRIPT, "worlds-mxo.js";
    "/worlds-tera.js", SCRIPT, "worlds-tera.js";
    "/worlds-uru.js", SCRIPT, "worlds-uru.js";
}

/// Routes of the page.
pub(crate) fn router() -> Router<Arc<State>> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, text)| {
        router.route(path, get(async move || ([(CONTENT_TYPE, kind)], text)))
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The page loads quickly even on an old phone, and has no code or style that its policy
    /// forbids.
    #[test]
    fn the_page_is_small_and_strict() {
        let bytes: usize = FILES.iter().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 300_000, "{bytes} bytes");
        let (_, _, html) = FILES[0];
        for word in ["style=", "<style", " onclick", " onload", " onerror", "javascript:"] {
            assert!(!html.contains(word), "{word}");
        }
        // A rule that is not closed would swallow all later ones.
        let (_, _, css) = FILES.iter().find(|(path, ..)| *path == "/page.css").unwrap();
        assert_eq!(css.matches('{').count(), css.matches('}').count());
        for (path, _, text) in FILES {
            let forbidden =
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("];
            for word in forbidden {
                assert!(!text.contains(word), "{path} contains {word}");
            }
        }
    }

    /// A rule that is not closed swallows all rules after it.
    #[test]
    fn the_rules_of_the_style_sheet_are_closed() {
        let css = FILES.iter().find(|(path, ..)| *path == "/page.css").unwrap().2;
        let (mut depth, mut is_group) = (0, false);
        for line in css.lines() {
            if depth == 0 {
                is_group = line.starts_with('@');
            }
            depth += line.matches('{').count();
            assert!(depth <= 1 + usize::from(is_group), "a rule before {line:?} is not closed");
            depth -= line.matches('}').count();
        }
        assert_eq!(depth, 0);
    }

    /// The page escapes the same characters as all other output.
    #[test]
    fn the_page_knows_the_hostile_characters() {
        let mut ranges = String::new();
        let is_in = |code: u32| char::from_u32(code).is_some_and(worldwire_core::text::is_hostile);
        let mut code = 0;
        while code <= 0x0010_ffff {
            if !is_in(code) {
                code += 1;
                continue;
            }
            let first = code;
            while is_in(code + 1) {
                code += 1;
            }
            let _ = write!(ranges, "\\u{{{first:x}}}-\\u{{{code:x}}}");
            code += 1;
        }
        let dom = FILES.iter().find(|(path, ..)| *path == "/dom.js").unwrap().2;
        assert!(dom.contains(&format!("/[{ranges}\\p{{Cs}}]/gu")), "{ranges}");
    }

    /// Every module that a script imports is served.
    #[test]
    fn all_imports_are_embedded() {
        for (path, _, text) in FILES {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let name = line.split("\"./").nth(1).and_then(|it| it.split('"').next());
                let wanted = format!("/{}", name.unwrap());
                assert!(FILES.iter().any(|(own, _, _)| *own == wanted), "{path}: {line}");
            }
        }
    }
}
