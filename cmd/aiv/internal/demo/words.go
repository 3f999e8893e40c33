package demo

// The words of sample answers in a language.
type words struct {
	note, would   string
	intro, none   string
	remarks, ends []string // remarks: by brand
}

// wordsOf has the words by ISO 639-1 code, for the languages of the sample questions. remarks have an entry for each of
// sampleBrands.
var wordsOf = map[string]words{
	"en": {
		note:  "This is a sample answer of aiv demo; no model was asked.",
		would: "would answer here",
		intro: "Reviewers and shops name these most often:",
		none:  "That depends on your feet: a shop with a treadmill can advise you.",
		remarks: []string{
			"light, and soft at the heel", "forgiving, and easy to find", "stable on wet ground",
			"a firm sole for long distances", "a wide toe box",
		},
		ends: []string{
			"Try them on in the afternoon, when feet are a little larger.",
			"A good pair does not change your stride.",
			"Shops lend pairs for a trial during Stride Week.",
		},
	},
	"it": {
		note:  "Questa è una risposta di esempio di aiv demo; nessun modello è stato interrogato.",
		would: "risponderebbe qui",
		intro: "Chi le prova e chi le vende nomina soprattutto queste:",
		none:  "Dipende dai tuoi piedi: un negozio con il tapis roulant ti sa consigliare.",
		remarks: []string{
			"leggera e morbida sul tallone", "facile da portare e da trovare", "stabile sul bagnato",
			"suola rigida per le lunghe distanze", "punta larga",
		},
		ends: []string{
			"Provale di pomeriggio, quando i piedi sono un po' più grandi.",
			"Durante la Stride Week i negozi le prestano per una prova.",
		},
	},
	"de": {
		note:  "Dies ist eine Beispielantwort von aiv demo; kein Modell wurde gefragt.",
		would: "würde hier antworten",
		intro: "Tester und Händler nennen diese am häufigsten:",
		none:  "Das hängt von deinen Füßen ab: Ein Geschäft mit Laufband kann dich beraten.",
		remarks: []string{
			"leicht und weich an der Ferse", "gutmütig und leicht zu finden", "stabil auf nassem Boden",
			"feste Sohle für lange Strecken", "vorn breit",
		},
		ends: []string{
			"Probiere sie nachmittags an, wenn die Füße etwas größer sind.",
			"Während der Stride Week verleihen Geschäfte Paare zum Testen.",
		},
	},
}
