//! Operators of the whole installation: the people of the organization that a setting names.

use axum::extract::{FromRef, FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use service::HttpError;

use crate::{Access, Staff};

/// Who operates the installation.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OperatorSettings {
    /// The organization whose people operate this installation: on their System page they see the
    /// dead letters of everybody, and retry, skip, rebuild and verify. Unset, nobody does.
    #[arg(
        id = "operator-org",
        long,
        env = "WAYPOST_OPERATOR_ORG",
        value_name = "ORG"
    )]
    pub org: Option<String>,
}

/// Proof that a request was sent by an operator of the installation: a staff member of the
/// organization that [`OperatorSettings`] names, on the pages of that organization.
///
/// Required for what belongs to everybody. Nothing else creates one.
#[derive(Clone, Debug)]
pub struct Operator(Staff);

impl Operator {
    /// The person.
    pub fn staff(&self) -> &Staff {
        &self.0
    }
}

impl Access {
    fn operator(&self, staff: Staff) -> Option<Operator> {
        let of = self.0.settings.operators.org.as_deref();
        let is_operator = of.is_some_and(|of| !of.is_empty() && of == staff.org.as_str());
        is_operator.then_some(Operator(staff))
    }
}

impl<State> FromRequestParts<State> for Operator
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let staff = Staff::from_request_parts(parts, state).await?;
        let operator = Access::from_ref(state).operator(staff);
        operator.ok_or_else(|| {
            HttpError::forbidden(
                "only operators of this installation may do this: the people of the organization \
                 that WAYPOST_OPERATOR_ORG names, on its pages",
            )
        })
    }
}

impl<State> OptionalFromRequestParts<State> for Operator
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = HttpError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &State,
    ) -> Result<Option<Self>, HttpError> {
        let staff = Staff::from_request_parts(parts, state).await?;
        Ok(Access::from_ref(state).operator(staff))
    }
}
