-- The map of an organization asks for the circles that it owns.
CREATE INDEX circles_of_organization ON circles (owner_org) WHERE owner_org IS NOT NULL;
