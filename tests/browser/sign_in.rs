//! Signing in and out.

use harness::Owner;

use crate::driver::browse;
use crate::system;

#[tokio::test]
async fn an_owner_signs_in_where_they_wanted_to_go_and_out_again() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let page = browser.page().await;
        page.go("/dashboard/webhooks").await;
        page.sees("For the owners of an organization").await;
        page.field("E-mail address").write(&owner.email).await;
        page.field("Password").write("a wrong password").await;
        page.may_say("401");
        page.button("Sign in").click().await;
        page.sees("wrong").await;
        page.field("Password").write(&owner.password).await;
        page.button("Sign in").follow().await;
        assert_eq!(page.path().await, "/dashboard/webhooks");
        page.sees("<Test> & Söhne").await;
        page.button("Sign out").follow().await;
        page.go("/dashboard").await;
        assert_eq!(page.path().await, "/dashboard/sign-in?next=%2Fdashboard");
    })
    .await;
}
