//! The districts of the original game, and the files that clients load for them.

/// The directory of the districts' files.
const FOLDER: &str = "resource/worlds/final_world";

/// The client's file of a district, if it is known.
///
/// Unverified: the file of district 5.
pub(super) fn path_of(district: u32) -> Option<String> {
    let name = match district {
        0 => "tutorial_v2/tutorial_v2",
        1 => "slums_barrens_full",
        2 => "downtown/dt_world",
        3 => "international/it",
        4 => "constructs/archive/archive01/archive01",
        5 => "constructs/archive/archive02/archive02",
        _ => return None,
    };
    Some(format!("{FOLDER}/{name}.metr"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_client() {
        let path = |district| path_of(district).unwrap();
        assert_eq!(path(1), "resource/worlds/final_world/slums_barrens_full.metr");
        assert_eq!(path(2), "resource/worlds/final_world/downtown/dt_world.metr");
        assert_eq!(path_of(99), None);
    }
}
