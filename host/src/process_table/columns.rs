//! Ids in columns of text; and where a column stands in a list of columns, known when this is compiled: SQLite finds it by comparing names, for each
//! column of each row, which took longer than all else about a row.

use rusqlite::{Row, RowIndex};

/// The place of `name` in a list as `a, b, c`.
///
/// # Panics
/// Where it is not there; in a `const`, that is an error of the compiler.
pub(super) const fn place(columns: &str, name: &str) -> usize {
    let (columns, name) = (columns.as_bytes(), name.as_bytes());
    let (mut at, mut place) = (0, 0);
    while at < columns.len() {
        let mut end = at;
        while end < columns.len() && columns[end] != b',' {
            end += 1;
        }
        while at < end && columns[at].is_ascii_whitespace() {
            at += 1;
        }
        let mut same = 0;
        while same < name.len() && at + same < end && columns[at + same] == name[same] {
            same += 1;
        }
        if same == name.len() && at + same == end {
            return place;
        }
        (at, place) = (end + 1, place + 1);
    }
    panic!("there is no such column")
}

/// The error of a value that is not what was written.
pub(super) fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

/// An id in a column of text.
pub(crate) fn id<T>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<T>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let column = column.idx(row.as_ref())?;
    row.get_ref(column)?.as_str()?.parse().map_err(|error| unreadable(column, error))
}

/// An id in a column of text that may be null.
pub(crate) fn optional_id<T>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<T>>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let column = column.idx(row.as_ref())?;
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| text.parse().map_err(|error| unreadable(column, error))).transpose()
}

/// A value that is kept as JSON in a column of text that may be null.
pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| serde_json::from_str(text).map_err(|error| unreadable(column, error))).transpose()
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn columns_are_found_by_their_whole_name() {
        let check = |name, want| assert_eq!(place("a_b, a, \n    b, a_b_c", name), want);
        check("a_b", 0);
        check("a", 1);
        check("b", 2);
        check("a_b_c", 3);
        assert!(std::panic::catch_unwind(|| place("a_b, c", "b")).is_err());
    }
}
