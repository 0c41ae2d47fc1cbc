//! Which known name was probably meant by one that is not known.

/// Longest name that is worth a guess: comparing takes the product of both lengths.
const MAX_GUESSED: usize = 64;
/// Most names that are compared with one: a file with more targets, and all of them missing, would take minutes.
pub(crate) const MAX_COMPARED: usize = 1000;
/// Least likeness of a name that was probably meant, of 1.
const LIKENESS: f64 = 0.5;
/// Shortest beginning, in bytes, by which a longer name is recognised.
const LEAST_BEGINNING: usize = 3;

/// The known name that was probably meant, if one is like enough.
pub(crate) fn probable<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_like(name, known)
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .map(|(_, known)| known)
}

/// The known name that is most like, however little that is.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_like(name, known).map(|(_, known)| known)
}

/// The `count` known names that are most like, the likeliest first; the first ones where there are too many to compare.
pub(crate) fn most_alike<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.collect();
    if known.len() > count && known.len() <= MAX_COMPARED && name.len() <= MAX_GUESSED {
        let name = name.to_lowercase();
        let mut rated: Vec<(f64, &str)> = known
            .into_iter()
            .map(|known| (likeness(&name, &known.to_lowercase()), known))
            .collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0));
        known = rated.into_iter().map(|(_, known)| known).collect();
    }
    known.truncate(count);
    known
}

fn most_like<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<(f64, &'a str)> {
    if name.len() > MAX_GUESSED {
        return None;
    }
    let name = name.to_lowercase();
    known
        .map(|known| (likeness(&name, &known.to_lowercase()), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

/// One name that begins with the other is meant by it, however much longer it is.
fn likeness(name: &str, known: &str) -> f64 {
    let likeness = strsim::normalized_damerau_levenshtein(name, known);
    let begins = name.starts_with(known) || known.starts_with(name);
    if begins && name.len().min(known.len()) >= LEAST_BEGINNING {
        likeness.max(LIKENESS)
    } else {
        likeness
    }
}
