//! Paths of names and indices, such as `members[2].name`.

/// A step of a path such as `members[2].name`.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Name(&'p str),
    Index(usize),
}

/// The steps of a path; `None` for a malformed step.
pub(super) fn path_steps(path: &str) -> impl Iterator<Item = Option<Step<'_>>> {
    path.split('.').flat_map(|part| {
        let mut pieces = part.split('[');
        let name = pieces.next().filter(|name| !name.is_empty());
        let index = |piece: &str| piece.strip_suffix(']')?.parse().ok().map(Step::Index);
        name.map(|name| Some(Step::Name(name))).into_iter().chain(pieces.map(index))
    })
}
