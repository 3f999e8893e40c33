package store

// Exported for the tests, which are an external package because storetest imports this one.

var PurgeBeforeAt = purgeBefore
