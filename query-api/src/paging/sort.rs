//! The order that a request asks for: `sort`.

use service::HttpError;

use super::cursor::Sorted;
use super::parameters::{Parameters, wrong};

/// The orders that a list has, and the values of `sort` that ask for them, each of which may also
/// follow a `-`.
pub(crate) type Sorts = [(&'static str, Sorted)];

/// The orders of a list whose items have no name.
pub(crate) const BY_TIME: &Sorts = &[("createdAt", Sorted::Created)];
/// The orders of a list whose items have a name.
pub(crate) const BY_TIME_AND_NAME: &Sorts =
    &[("createdAt", Sorted::Created), ("name", Sorted::Name)];

/// The default of every list.
const NEWEST_FIRST: &str = "-createdAt";

/// The order of a list, as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) by: Sorted,
    /// Whether the greatest come first.
    pub(crate) descending: bool,
}

impl Sort {
    /// Returns the order that a request asks for, among those that a list has.
    pub(crate) fn from_parameters(
        parameters: &Parameters,
        sorts: &Sorts,
    ) -> Result<Self, HttpError> {
        let sort = parameters.one("sort")?.unwrap_or(NEWEST_FIRST);
        let (word, descending) = match sort.strip_prefix('-') {
            Some(word) => (word, true),
            None => (sort, false),
        };
        let found = sorts.iter().find(|(known, _)| *known == word);
        let (_, by) = found.ok_or_else(|| no_such_sort(sort, sorts))?;
        Ok(Self {
            by: *by,
            descending,
        })
    }
}

/// Refuses every order but the only one of a list that is always newest first.
pub(super) fn newest_first(parameters: &Parameters) -> Result<(), HttpError> {
    match parameters.one("sort")? {
        None | Some(NEWEST_FIRST) => Ok(()),
        Some(sort) => Err(wrong(
            "sort",
            &format!("must be {NEWEST_FIRST}, not {sort:?}"),
        )),
    }
}

fn no_such_sort(sort: &str, sorts: &Sorts) -> HttpError {
    let known: Vec<_> = sorts.iter().map(|(word, _)| *word).collect();
    let reason = match known.as_slice() {
        [others @ .., last] if !others.is_empty() => {
            let others = others.join(", ");
            format!(
                "must be {others} or {last}, or one of these after a - to descend, not {sort:?}"
            )
        }
        one => {
            let one = one.concat();
            format!("must be {one} or -{one}, not {sort:?}")
        }
    };
    wrong("sort", &reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str, sorts: &Sorts) -> Result<Sort, String> {
        let uri = format!("/list{query}").parse().unwrap();
        Parameters::of(&uri)
            .and_then(|parameters| Sort::from_parameters(&parameters, sorts))
            .map_err(|error| error.message.into_owned())
    }

    #[test]
    fn a_list_is_newest_first_unless_asked_otherwise() {
        let newest = asked("", BY_TIME).unwrap();
        assert_eq!(newest, asked("?sort=-createdAt", BY_TIME).unwrap());
        assert_eq!((newest.by, newest.descending), (Sorted::Created, true));
        let named = asked("?sort=name", BY_TIME_AND_NAME).unwrap();
        assert_eq!((named.by, named.descending), (Sorted::Name, false));
    }

    #[test]
    fn an_order_that_a_list_does_not_have_is_answered_with_those_that_it_has() {
        assert_eq!(
            asked("?sort=name", BY_TIME).unwrap_err(),
            "sort: must be createdAt or -createdAt, not \"name\""
        );
        assert_eq!(
            asked("?sort=amount", BY_TIME_AND_NAME).unwrap_err(),
            "sort: must be createdAt or name, or one of these after a - to descend, not \"amount\""
        );
    }
}
