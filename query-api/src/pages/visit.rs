//! The visitor of a page of the dashboard.

use access::Staff;
use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use minijinja::context;
use schemas::{AccountId, OrgId};
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::address::encoded;
use super::frame::{Page, shown};
use crate::locations::bigint;
use crate::paging::Parameters;
use crate::progress::Projection;
use crate::reading::Models;
use crate::search::Counts;
use crate::state::State;

/// Where visitors who are not signed in are sent.
const SIGN_IN: &str = "/dashboard/sign-in";

/// A visit by a person of an organization's staff. Visitors who are not signed in are sent to the
/// sign-in page, and from there back.
pub(super) struct Visit {
    pub(super) staff: Staff,
    models: Models,
    position: Option<String>,
}

/// A response instead of a page.
pub(super) struct Instead(Response);

impl IntoResponse for Instead {
    fn into_response(self) -> Response {
        self.0
    }
}

/// Errors are shown as pages too.
impl From<HttpError> for Instead {
    fn from(error: HttpError) -> Self {
        let page = Page::open("message.html", "Waypost");
        let shown = context! {
            heading => error.status.canonical_reason().unwrap_or("Something went wrong"),
            text => error.message.as_ref(),
        };
        let status = error.status;
        let page = page.show(shown).map(|mut page| {
            *page.status_mut() = status;
            page
        });
        Self(page.unwrap_or_else(|_| error.into_response()))
    }
}

impl From<sqlx::Error> for Instead {
    fn from(error: sqlx::Error) -> Self {
        HttpError::from(error).into()
    }
}

impl FromRequestParts<State> for Visit {
    type Rejection = Instead;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Instead> {
        let staff = Staff::from_request_parts(parts, state).await;
        let staff = staff.map_err(|error| match error.status.as_u16() {
            401 => Instead(Redirect::to(&sign_in_for(&parts.uri)).into_response()),
            _ => error.into(),
        })?;
        let parameters = Parameters::of(&parts.uri)?;
        Ok(Self {
            staff,
            models: Models::of(parts, state),
            position: parameters.one("position")?.map(str::to_owned),
        })
    }
}

/// Returns the address of the sign-in page that leads back to the requested page.
fn sign_in_for(page: &Uri) -> String {
    format!("{SIGN_IN}?next={}", encoded(page.path()))
}

#[derive(Serialize)]
struct Organization {
    id: String,
    name: String,
}

impl Visit {
    /// The organization whose data is shown.
    pub(super) fn org(&self) -> &OrgId {
        &self.staff.org
    }

    /// Returns the read models once they have reached the changes of the previous page.
    pub(super) async fn models(&self, projections: &[Projection]) -> Result<&PgPool, HttpError> {
        let after = self.position.as_deref();
        self.models.reached_after(after, projections).await
    }

    /// The cached record counts.
    pub(super) fn counts(&self) -> &Counts {
        self.models.counts()
    }

    /// Creates a page at a place of the dashboard.
    pub(super) async fn page(
        &self,
        template: &'static str,
        title: &'static str,
        place: &'static str,
    ) -> Result<Page, HttpError> {
        let models = self.models(&[Projection::Organizations]).await?;
        let ids: Vec<_> = self.staff.organizations.iter().map(OrgId::as_str).collect();
        let organizations = find_organizations(&ids, models).await?;
        let own = organizations
            .iter()
            .find(|org| org.id == self.org().as_str());
        let own = own.map_or("Your organization", |own| own.name.as_str());
        let name = find_name(self.staff.person.account_id, models).await?;
        Ok(Page {
            template,
            title,
            place,
            scripts: vec!["dashboard.js"],
            style: None,
            images: None,
            visitor: context! {
                name => name,
                org => own,
                org_id => self.org().as_str(),
                organizations => shown(&organizations),
            },
        })
    }
}

async fn find_organizations(
    ids: &[&str],
    models: &PgPool,
) -> Result<Vec<Organization>, sqlx::Error> {
    sqlx::query_as!(
        Organization,
        "SELECT org_id AS id, name FROM organizations WHERE org_id = ANY($1) ORDER BY created_at",
        ids as _,
    )
    .fetch_all(models)
    .await
}

/// Returns the name of a person.
pub(super) async fn find_name(
    account: AccountId,
    models: &PgPool,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT name FROM accounts WHERE account_id = $1",
        bigint(account),
    )
    .fetch_optional(models)
    .await
}
