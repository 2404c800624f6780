//! Deleted records with their deletion time, for clients that keep copies up to date.

use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::Change;
use crate::projection::totals::Totals;

/// Saves what a batch deletes in a separate table, and removes the entries of what exists again.
macro_rules! deletions {
    ($($name:ident in $table:literal),+ $(,)?) => {$(
        pub(super) async fn $name<R>(
            rows: &mut PgConnection,
            Change { put, gone, .. }: &Change<'_, R>,
            _totals: &mut Totals,
        ) -> Result<(), sqlx::Error> {
            if !put.is_empty() {
                sqlx::query!(
                    "DELETE FROM " + $table + " AS deleted
                     USING UNNEST($1::text[], $2::text[]) AS put (org_id, id)
                     WHERE deleted.org_id = put.org_id AND deleted.id = put.id",
                    put.iter().map(|put| put.key.0).bind_iter() as _,
                    put.iter().map(|put| put.key.1).bind_iter() as _,
                )
                .execute(&mut *rows)
                .await?;
            }
            if !gone.is_empty() {
                sqlx::query!(
                    "INSERT INTO " + $table + " (org_id, id, deleted_at)
                     SELECT * FROM UNNEST($1::text[], $2::text[], $3::timestamptz[])
                     ON CONFLICT (org_id, id) DO UPDATE SET deleted_at = excluded.deleted_at",
                    gone.iter().map(|gone| gone.key.0).bind_iter() as _,
                    gone.iter().map(|gone| gone.key.1).bind_iter() as _,
                    gone.iter().map(|gone| gone.deleted_at).bind_iter() as _,
                )
                .execute(rows)
                .await?;
            }
            Ok(())
        }
    )+};
}

deletions! {
    of_companies in "deleted_companies",
    of_deals in "deleted_deals",
    of_contacts in "deleted_contacts",
}
