package match

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// decompositions maps the characters that the normal form replaces to their compatibility decompositions [UAX #15,
// NFKD], apart from those that decompose computes. TestDecompositionEqualsPostgreSQL compares all of them with
// PostgreSQL's normalize.
var decompositions = func() map[rune]string {
	table := make(map[rune]string, 1200)
	for _, pair := range strings.Fields(compatible) {
		from, size := utf8.DecodeRuneInString(pair)
		table[from] = pair[size+1:]
	}
	table[0x37a] = " \u0345" // a space, which Fields cannot return
	// Canonical decompositions may nest: the base of a pair may have a decomposition, down to a letter with several
	// marks.
	canonical := make(map[rune]string, 1000)
	for _, m := range marked {
		for pairs := []rune(m.pairs); len(pairs) > 0; pairs = pairs[2:] {
			canonical[pairs[1]] = string([]rune{pairs[0], m.mark})
		}
	}
	var expand func(r rune) string
	expand = func(r rune) string {
		if pair, ok := canonical[r]; ok {
			base, size := utf8.DecodeRuneInString(pair)
			return expand(base) + pair[size:]
		}
		if s, ok := table[r]; ok {
			return s
		}
		return string(r)
	}
	for r := range canonical {
		table[r] = expand(r)
	}
	return table
}()

// decompose returns the compatibility decomposition of r, which is in the ranges that M4 names (hasDecomposition), or
// "" if r is its own.
func decompose(r rune) string {
	switch {
	case 0x24b6 <= r && r <= 0x24cf: // circled letters
		return string('A' + r - 0x24b6)
	case 0x24d0 <= r && r <= 0x24e9:
		return string('a' + r - 0x24d0)
	case 0xfb00 <= r && r <= 0xfb06: // ligatures
		return [...]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}[r-0xfb00]
	case 0xff01 <= r && r <= 0xff5e: // full-width ASCII
		return string(r - 0xff01 + '!')
	// The full-width white parentheses.
	case 0xff5f <= r && r <= 0xff60:
		return string(r - 0xff5f + 0x2985)
	case 0xff61 <= r && r <= 0xff9f:
		return halfWidth[r-0xff61]
	case 0x1d400 <= r && r <= 0x1d7ff:
		return mathematical(r)
	}
	return decompositions[r]
}

// mathematical returns the letter or digit that the mathematical symbol r, of 1D400-1D7FF, is a style of.
func mathematical(r rune) string {
	switch {
	case !unicode.Is(unicode.Common, r): // not assigned
		return ""
	case r < 0x1d6a4: // 13 Latin alphabets
		n := (r - 0x1d400) % 52
		if n < 26 {
			return string('A' + n)
		}
		return string('a' + n - 26)
	case r < 0x1d6a8:
		// Dotless i and j; two code points are not assigned.
		return [...]string{"\u0131", "\u0237", "", ""}[r-0x1d6a4]
	case r < 0x1d7ca: // five Greek alphabets
		return greekAlphabet[(r-0x1d6a8)%58]
	case r < 0x1d7ce:
		// Digamma, capital and small; two code points are not assigned.
		return [...]string{"\u03dc", "\u03dd", "", ""}[r-0x1d7ca]
	}
	return string('0' + (r-0x1d7ce)%10)
}

var (
	greekAlphabet = strings.Split("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΘΣΤΥΦΧΨΩ∇αβγδεζηθικλμνξοπρςστυφχψω∂εθκφρπ", "")
	halfWidth     = strings.Split("。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u3099\u309a", "")
)

// compatible has pairs of a character and its decomposition that are not a letter and a mark.
const compatible = "" +
	"ª=a µ=μ º=o Ĳ=IJ ĳ=ij Ŀ=L· ŀ=l· ŉ=ʼn ſ=s Ǆ=DZ\u030c ǅ=Dz\u030c ǆ=dz\u030c Ǉ=LJ ǈ=Lj ǉ=lj Ǌ=NJ " +
	"ǋ=Nj ǌ=nj Ǳ=DZ ǲ=Dz ǳ=dz \u0374=ʹ ϐ=β ϑ=θ ϒ=Υ ϕ=φ ϖ=π ϰ=κ ϱ=ρ ϲ=ς ϴ=Θ ϵ=ε Ϲ=Σ ẚ=aʾ " +
	"\u1f71=α\u0301 \u1f73=ε\u0301 \u1f75=η\u0301 \u1f77=ι\u0301 \u1f79=ο\u0301 \u1f7b=υ\u0301 " +
	"\u1f7d=ω\u0301 \u1fbb=Α\u0301 \u1fbe=ι \u1fc9=Ε\u0301 \u1fcb=Η\u0301 \u1fd3=ι\u0308\u0301 " +
	"\u1fdb=Ι\u0301 \u1fe3=υ\u0308\u0301 \u1feb=Υ\u0301 \u1ff9=Ο\u0301 \u1ffb=Ω\u0301 ⁱ=i ⁴=4 ⁵=5 " +
	"⁶=6 ⁷=7 ⁸=8 ⁹=9 ⁺=+ ⁻=− ⁼== ⁽=( ⁾=) ⁿ=n ₀=0 ₁=1 ₂=2 ₃=3 ₄=4 ₅=5 ₆=6 ₇=7 ₈=8 ₉=9 ₊=+ ₋=− ₌== ₍=( " +
	"₎=) ₐ=a ₑ=e ₒ=o ₓ=x ₔ=ə ₕ=h ₖ=k ₗ=l ₘ=m ₙ=n ₚ=p ₛ=s ₜ=t ℀=a/c ℁=a/s ℂ=C ℃=°C ℅=c/o ℆=c/u ℇ=Ɛ " +
	"℉=°F ℊ=g ℋ=H ℌ=H ℍ=H ℎ=h ℏ=ħ ℐ=I ℑ=I ℒ=L ℓ=l ℕ=N №=No ℙ=P ℚ=Q ℛ=R ℜ=R ℝ=R ℠=SM ℡=TEL ™=TM ℤ=Z " +
	"\u2126=Ω ℨ=Z \u212a=K \u212b=A\u030a ℬ=B ℭ=C ℯ=e ℰ=E ℱ=F ℳ=M ℴ=o ℵ=א ℶ=ב ℷ=ג ℸ=ד ℹ=i ℻=FAX ℼ=π " +
	"ℽ=γ ℾ=Γ ℿ=Π ⅀=∑ ⅅ=D ⅆ=d ⅇ=e ⅈ=i ⅉ=j ゟ=より ヿ=コト"

// marked has, for each combining mark, pairs of a letter and the letter with the mark.
var marked = []struct {
	mark  rune
	pairs string
}{
	{0x300, "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹЕЀИЍеѐиѝĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêềÔỒôồƠỜơờƯỪưừYỲyỳἀἂἁἃἈἊἉἋἐἒἑἓἘἚἙἛ" +
		"ἠἢἡἣἨἪἩἫἰἲἱἳἸἺἹἻὀὂὁὃὈὊὉὋὐὒὑὓὙὛὠὢὡὣὨὪὩὫαὰεὲηὴιὶοὸυὺωὼΑᾺΕῈΗῊϊῒΙῚϋῢΥῪΟῸΩῺ"},
	{0x301, "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻÆǼæǽØǾøǿΑΆΕΈΗΉΙΊΟΌΥΎΩΏϊΐαάεέηήιί" +
		"ϋΰοόυύωώϒϓГЃКЌгѓкќÇḈçḉĒḖēḗÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕŨṸũṹWẂwẃÂẤâấĂẮăắÊẾêếÔỐôốƠỚơớƯỨưứἀἄἁἅἈἌἉἍἐἔ" +
		"ἑἕἘἜἙἝἠἤἡἥἨἬἩἭἰἴἱἵἸἼἹἽὀὄὁὅὈὌὉὍὐὔὑὕὙὝὠὤὡὥὨὬὩὭ"},
	{0x302, "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệỌỘọộ"},
	{0x303, "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ"},
	{0x304, "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳИӢиӣУӮуӯGḠgḡḶḸḷḹṚṜṛṝαᾱΑᾹιῑΙῙυῡΥῩ"},
	{0x306, "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭУЎИЙийуўЖӁжӂАӐаӑЕӖеӗȨḜȩḝẠẶạặαᾰΑᾸιῐΙῘυῠΥῨ"},
	{0x307, "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠsṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆwẇXẊxẋYẎyẏſẛ"},
	{0x308, "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸΙΪΥΫιϊυϋϒϔЕЁІЇеёіїАӒаӓӘӚәӛЖӜжӝЗӞзӟИӤиӥОӦоӧӨӪөӫЭӬэӭУӰуӱЧӴчӵЫӸыӹHḦhḧÕṎ" +
		"õṏŪṺūṻWẄwẅXẌxẍtẗ"},
	{0x309, "AẢaảÂẨâẩĂẲăẳEẺeẻÊỂêểIỈiỉOỎoỏÔỔôổƠỞơởUỦuủƯỬưửYỶyỷ"},
	{0x30a, "AÅaåUŮuůwẘyẙ"},
	{0x30b, "OŐoőUŰuűУӲуӳ"},
	{0x30c, "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzžAǍaǎIǏiǐOǑoǒUǓuǔÜǙüǚGǦgǧKǨkǩƷǮʒǯjǰHȞhȟ"},
	{0x30f, "AȀaȁEȄeȅIȈiȉOȌoȍRȐrȑUȔuȕѴѶѵѷ"},
	{0x311, "AȂaȃEȆeȇIȊiȋOȎoȏRȒrȓUȖuȗ"},
	{0x313, "αἀΑἈεἐΕἘηἠΗἨιἰΙἸοὀΟὈυὐωὠΩὨρῤ"},
	{0x314, "αἁΑἉεἑΕἙηἡΗἩιἱΙἹοὁΟὉυὑΥὙωὡΩὩρῥΡῬ"},
	{0x31b, "OƠoơUƯuư"},
	{0x323, "BḄbḅDḌdḍHḤhḥKḲkḳLḶlḷMṂmṃNṆnṇRṚrṛSṢsṣTṬtṭVṾvṿWẈwẉZẒzẓAẠaạEẸeẹIỊiịOỌoọƠỢơợUỤuụƯỰưựYỴyỵ"},
	{0x324, "UṲuṳ"},
	{0x325, "AḀaḁ"},
	{0x326, "SȘsșTȚtț"},
	{0x327, "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"},
	{0x328, "AĄaąEĘeęIĮiįUŲuųOǪoǫ"},
	{0x32d, "DḒdḓEḘeḙLḼlḽNṊnṋTṰtṱUṶuṷ"},
	{0x32e, "HḪhḫ"},
	{0x330, "EḚeḛIḬiḭUṴuṵ"},
	{0x331, "BḆbḇDḎdḏKḴkḵLḺlḻNṈnṉRṞrṟTṮtṯZẔzẕhẖ"},
	{0x342, "ἀἆἁἇἈἎἉἏἠἦἡἧἨἮἩἯἰἶἱἷἸἾἹἿὐὖὑὗὙὟὠὦὡὧὨὮὩὯαᾶηῆιῖϊῗυῦϋῧωῶ"},
	{0x345, "ἀᾀἁᾁἂᾂἃᾃἄᾄἅᾅἆᾆἇᾇἈᾈἉᾉἊᾊἋᾋἌᾌἍᾍἎᾎἏᾏἠᾐἡᾑἢᾒἣᾓἤᾔἥᾕἦᾖἧᾗἨᾘἩᾙἪᾚἫᾛἬᾜἭᾝἮᾞἯᾟὠᾠὡᾡὢᾢὣᾣὤᾤὥᾥὦᾦὧᾧὨᾨὩᾩὪᾪὫᾫὬᾬὭᾭ" +
		"ὮᾮὯᾯὰᾲαᾳάᾴᾶᾷΑᾼὴῂηῃήῄῆῇΗῌὼῲωῳώῴῶῷΩῼ"},
	{0x3099, "かがきぎくぐけげこごさざしじすずせぜそぞただちぢつづてでとどはばひびふぶへべほぼうゔゝゞカガキギクグケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドハバヒビフブヘベホボウヴワヷヰヸヱヹ" +
		"ヲヺヽヾ"},
	{0x309a, "はぱひぴふぷへぺほぽハパヒピフプヘペホポ"},
}
