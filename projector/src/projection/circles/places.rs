//! The places that circles watch.

use event_log::{Binding, EventLog};
use schemas::{Event, Recorded};
use serde::Deserialize;
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use crate::projection::personal::{self, Unsealing, unseal_each};
use crate::projection::text::storable;
use crate::projection::{ApplyError, bigint};

/// The sealed part of a place.
#[derive(Deserialize)]
struct Place {
    name: String,
    lat: f64,
    lng: f64,
    radius_m: f64,
}

pub(super) async fn add(
    rows: &mut PgConnection,
    log: &EventLog,
    events: &[&Recorded],
) -> Result<(), ApplyError> {
    let added = events.iter().filter_map(|recorded| match &recorded.event {
        Event::CirclePlaceAdded(added) => Some(Unsealing {
            of: (added, recorded.time),
            binding: Binding::WatchedPlace(added.by, added.place_id.clone()),
            sealed: &added.place,
        }),
        _ => None,
    });
    let unsealed = unseal_each(log, added.collect()).await?;
    let mut places = Vec::with_capacity(unsealed.len());
    for ((added, at), text) in unsealed {
        places.push((added, at, personal::read::<Place>(&text)?));
    }
    if places.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO circle_places (circle_id, place_id, named_by, name, lat, lng, radius_m,
                                    created_at)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::text[], $5::float8[],
                              $6::float8[], $7::float8[], $8::timestamptz[])
                           AS place (circle_id, place_id, named_by)
         WHERE NOT EXISTS (
             SELECT FROM forgotten_accounts AS gone WHERE gone.account_id = place.named_by
         )",
        places
            .iter()
            .map(|(p, ..)| p.circle_id.as_str())
            .bind_iter() as _,
        places.iter().map(|(p, ..)| p.place_id.as_str()).bind_iter() as _,
        places.iter().map(|(p, ..)| bigint(p.by.0)).bind_iter() as _,
        places
            .iter()
            .map(|(.., place)| storable(&place.name))
            .bind_iter() as _,
        places.iter().map(|(.., place)| place.lat).bind_iter() as _,
        places.iter().map(|(.., place)| place.lng).bind_iter() as _,
        places.iter().map(|(.., place)| place.radius_m).bind_iter() as _,
        places.iter().map(|(_, at, _)| *at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

pub(super) async fn remove(
    rows: &mut PgConnection,
    events: &[&Recorded],
) -> Result<(), sqlx::Error> {
    let removed = events.iter().filter_map(|recorded| match &recorded.event {
        Event::CirclePlaceRemoved(removed) => {
            Some((removed.circle_id.as_str(), removed.place_id.as_str()))
        }
        _ => None,
    });
    let (circles, places): (Vec<&str>, Vec<&str>) = removed.unzip();
    if circles.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM circle_places
         WHERE (circle_id, place_id) IN (SELECT * FROM UNNEST($1::text[], $2::text[]))",
        &circles as _,
        &places as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
