package visibility

// DecodeFacts lets tests in other packages read the column facts.
var DecodeFacts = decodeFacts
