//! Maps the columns of a CSV to fields.

use std::borrow::Cow;
use std::fmt;

use command_api::records::Fault;
use domain::record::{Columns, Draft, Kind};
use query_api::field_of_column;

use crate::Failure;

/// A column that was named with `--map`.
#[derive(Clone, Debug)]
pub(super) struct Named {
    column: String,
    /// `None` if the column is left out.
    field: Option<String>,
}

/// How the columns of a file are read.
pub(super) struct Mapping {
    columns: Columns,
    /// The indexes of the columns that are read, and which of them hold times.
    places: Vec<(usize, Holds)>,
    width: usize,
    /// Columns that match no field.
    pub(super) left_out: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Anything,
    /// A time as other systems write it.
    Time,
    /// A day, perhaps with a time.
    Day,
}

/// Reads `Column=field`.
pub(super) fn named(text: &str) -> Result<Named, String> {
    let (column, field) = text
        .rsplit_once('=')
        .filter(|(column, _)| !column.is_empty())
        .ok_or("must be \"Column=field\", or \"Column=\" to leave the column out")?;
    Ok(Named {
        column: column.trim().to_owned(),
        field: Some(field.trim().to_owned()).filter(|field| !field.is_empty()),
    })
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.column, self.field.as_deref().unwrap_or(""))
    }
}

impl Mapping {
    /// Takes a header row: a column maps to the field it was named, or to the field of its name, or
    /// of its name in HubSpot or Salesforce. In a file of one of these, other columns are left out.
    pub(super) fn new(
        kind: Kind,
        header: &csv::StringRecord,
        named: &[Named],
    ) -> Result<Self, Failure> {
        let header: Vec<&str> = header
            .iter()
            .map(|name| name.trim_start_matches('\u{feff}').trim())
            .collect();
        for Named { column, .. } in named {
            if !header.contains(&column.as_str()) {
                let columns = header.join(", ");
                let error = format!("--map: no column {column:?}; the file has: {columns}");
                return Err(error.into());
            }
        }
        let is_foreign = is_foreign(&header);
        let mut fields: Vec<Option<&str>> =
            header.iter().map(|name| own(kind, name, named)).collect();
        for (place, name) in header.iter().enumerate() {
            let is_named = named.iter().any(|one| one.column == *name);
            let guess = field_of_column(kind.name(), name);
            if fields[place].is_none() && !is_named {
                // If two columns fit, the first one is taken.
                fields[place] = guess.filter(|field| !fields.contains(&Some(field)));
                if fields[place].is_none() && !is_foreign {
                    // Rejected below, as an unknown field.
                    fields[place] = Some(name);
                }
            }
        }
        let (mut names, mut places, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (place, field) in fields.iter().enumerate() {
            match field {
                Some(field) => {
                    names.push(*field);
                    places.push((place, holds(field, is_foreign)));
                }
                None => left_out.push(header[place].to_owned()),
            }
        }
        Ok(Self {
            columns: Columns::new(kind, names)?,
            places,
            width: header.len(),
            left_out,
        })
    }

    /// Reads a record from a row.
    pub(super) fn draft(&self, row: &csv::StringRecord) -> Result<Draft, Fault> {
        if row.len() != self.width {
            let (cells, width) = (row.len(), self.width);
            return Err(format!("has {cells} cells, the header row has {width}").into());
        }
        let cells = self.places.iter().map(|(place, holds)| {
            let cell = row.get(*place).unwrap_or_default();
            match holds {
                Holds::Anything => Cow::Borrowed(cell),
                Holds::Time => time(cell),
                Holds::Day => Cow::Borrowed(cell.get(..10).unwrap_or(cell)),
            }
        });
        let cells: Vec<Cow<'_, str>> = cells.collect();
        let draft = self.columns.draft(cells.iter().map(AsRef::as_ref));
        draft.map_err(Fault::from)
    }
}

/// The field that a column was named, or else the field of its name.
fn own<'n>(kind: Kind, name: &'n str, named: &'n [Named]) -> Option<&'n str> {
    if let Some(one) = named.iter().find(|one| one.column == name) {
        return one.field.as_deref();
    }
    let is_field =
        ["id", "createdAt", "updatedAt"].contains(&name) || kind.field_names().contains(&name);
    is_field.then_some(name)
}

/// Whether a header row was written by HubSpot or Salesforce.
fn is_foreign(header: &[&str]) -> bool {
    let has = |name: &str| header.contains(&name);
    has("Record ID") || (has("Id") && ["OwnerId", "CreatedDate"].into_iter().any(has))
}

fn holds(field: &str, is_foreign: bool) -> Holds {
    match field {
        "createdAt" if is_foreign => Holds::Time,
        "expectedCloseDate" if is_foreign => Holds::Day,
        _ => Holds::Anything,
    }
}

/// Converts a time to RFC 3339: HubSpot writes `2024-05-02 09:15`, in the account's zone, which is
/// taken for UTC; Salesforce `2024-05-02T09:15:00.000+0000`. Anything else is refused later.
fn time(cell: &str) -> Cow<'_, str> {
    let is = |pattern: &str| {
        cell.len() == pattern.len()
            && cell
                .bytes()
                .zip(pattern.bytes())
                .all(|(byte, wanted)| match wanted {
                    b'0' => byte.is_ascii_digit(),
                    wanted => byte == wanted,
                })
    };
    if is("0000-00-00 00:00") {
        Cow::Owned(format!("{}:00Z", cell.replace(' ', "T")))
    } else if is("0000-00-00 00:00:00") {
        Cow::Owned(format!("{}Z", cell.replace(' ', "T")))
    } else if is("0000-00-00T00:00:00.000+0000") {
        Cow::Owned(format!("{}:{}", &cell[..26], &cell[26..]))
    } else {
        Cow::Borrowed(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(kind: Kind, header: &[&str], named_as: &[&str]) -> Result<Mapping, String> {
        let named: Vec<Named> = named_as.iter().map(|text| named(text).unwrap()).collect();
        let header = csv::StringRecord::from(header.to_vec());
        Mapping::new(kind, &header, &named).map_err(|error| error.to_string())
    }

    #[test]
    fn exports_of_hubspot_and_salesforce_are_known_by_their_headers() {
        let hubspot = [
            "Record ID",
            "First Name",
            "Email",
            "Lifecycle Stage",
            "Create Date",
        ];
        let mapping = mapped(Kind::Contacts, &hubspot, &[]).unwrap();
        assert_eq!(mapping.left_out, ["Lifecycle Stage"]);
        let row = vec!["1", "Ada", "a@b.c", "lead", "2024-05-02 09:15"];
        assert!(mapping.draft(&row.into()).is_ok());
        let salesforce = [
            "Id",
            "FirstName",
            "LastName",
            "MailingCity",
            "CreatedDate",
            "OwnerId",
        ];
        let mapping = mapped(Kind::Contacts, &salesforce, &[]).unwrap();
        assert_eq!(mapping.left_out, ["OwnerId"]);
        let row = vec![
            "1",
            "Ada",
            "Byron",
            "Rome",
            "2024-05-02T09:15:00.000+0000",
            "7",
        ];
        assert!(mapping.draft(&row.into()).is_ok());
    }

    #[test]
    fn columns_are_what_they_were_named() {
        let mapping = mapped(
            Kind::Contacts,
            &["E-Mail=x", "Nonsense"],
            &["E-Mail=x=email", "Nonsense="],
        );
        assert_eq!(mapping.unwrap().left_out, ["Nonsense"]);
        let fault =
            |header: &[&str], named: &[&str]| mapped(Kind::Contacts, header, named).err().unwrap();
        assert!(fault(&["email"], &["Mail=email"]).contains("no column"));
        assert!(fault(&["email", "shoeSize"], &[]).contains("shoeSize"));
        assert!(fault(&["email", "Mail"], &["Mail=email"]).contains("twice"));
        assert!(fault(&["email"], &["email=shoeSize"]).contains("shoeSize"));
        assert!(named("email").is_err() && named("=email").is_err());
    }

    #[test]
    fn amounts_are_not_guessed() {
        let mapping = mapped(
            Kind::Deals,
            &["Record ID", "Deal Name", "Deal probability"],
            &[],
        );
        assert_eq!(mapping.unwrap().left_out, ["Deal probability"]);
    }
}
