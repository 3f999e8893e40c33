package match

import (
	"iter"
	"strings"
)

// The lists of the specification. Headings, legal forms and phrases are in normal form.

// blockTags are the tags of HTML that are barriers.
var blockTags = wordSet("address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption " +
	"figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol option p section " +
	"select summary table tbody td tfoot th thead title tr ul")

// sourcesHeadings are the headings of lists of sources at the end of an answer, see dropSources.
var sourcesHeadings = setOf(strings.SplitSeq("sources, source, references, reference, citations, works cited, further reading, "+
	"sources and references, fonti, fonte, riferimenti, bibliografia, fonti e riferimenti, quellen, quelle, quellenangaben, "+
	"quellenverzeichnis, einzelnachweise, referenzen, bibliographie, sitographie, sources et references, "+
	"fuentes, fuente, referencias, fuentes y referencias", ", "))

// particles may follow a Korean name without a space.
var particles = wordSet("은 는 이 가 을 를 의 에 도 만 와 과 로 랑 나 고 란 뿐 으로 에서 에게 한테 께서 부터 까지 보다 처럼 마다 조차 마저 밖에 대로 이나 이랑 하고 이고 이며 이란 라고 라는 " +
	"이라고 이라는 같은 만큼 에는 에도 에서는 에서도 에서의 에게는 에게도 로는 로도 로의 로써 로서 로부터 으로는 으로도 으로의 으로써 으로서 으로부터 까지는 까지도 부터는 보다는 보다도 " +
	"만이 만을 만의 과는 과도 과의 와는 와도 와의 입니다 이다 이에요 예요 였다 이었다 인데 이지만")

// legalForms are removed from the end of a name; see also isLegalForm.
var legalForms = wordSet("inc incorporated llc llp ltd limited plc corp corporation co gmbh ag kg kgaa ohg ug sa sas sasu sarl srl " +
	"snc bv nv ab aps oy oyj kk pty pte sl slu sro kft zrt ltda")

// turnWords end the reach of a phrase of absence.
var turnWords = strings.Fields("but however though although yet while whereas instead ma pero tuttavia mentre invece aber jedoch sondern " +
	"doch wahrend hingegen mais cependant toutefois tandis sino aunque mientras")

// secondLevels are labels below which the domains of a country are registered, such as co in co.uk.
var secondLevels = wordSet("ac co com edu go gob gov mil ne net nom or org")

// sharedHosts have many owners: a brand can only own a host below them or a path.
var sharedHosts = wordSet("000webhostapp.com altervista.org amazonaws.com appspot.com atlassian.net azureedge.net " +
	"azurestaticapps.net azurewebsites.net b-cdn.net backblazeb2.com bitbucket.io blogspot.com bubbleapps.io " +
	"business.site canva.site carrd.co cloudapp.net cloudfront.net cloudwaysapps.com core.windows.net " +
	"deno.dev digitaloceanspaces.com fastly.net firebaseapp.com fly.dev framer.ai framer.app framer.website " +
	"ghost.io gitbook.io github.io gitlab.io glitch.me godaddysites.com googleusercontent.com gradio.live " +
	"hashnode.dev helpscoutdocs.com herokuapp.com hf.space home.blog hs-sites.com hubspotpagebuilder.com " +
	"intercom.help jimdofree.com jimdosite.com kinsta.cloud linodeobjects.com livejournal.com lovable.app " +
	"mailchimpsites.com medium.com my.site.com myshopify.com mystrikingly.com neocities.org netlify.app " +
	"ngrok-free.app ngrok.app ngrok.io notion.site now.sh ondigitalocean.app onrender.com over-blog.com " +
	"pages.dev pantheonsite.io platformsh.site r2.dev readme.io readthedocs.io repl.co replit.app replit.dev " +
	"run.app sharepoint.com site123.me square.site statuspage.io streamlit.app substack.com supabase.co " +
	"super.site tilda.ws translate.goog trycloudflare.com tumblr.com typepad.com ucoz.com up.railway.app " +
	"vercel.app vercel.dev web.app webflow.io webnode.page weeblysite.com wixsite.com wixstudio.com " +
	"wordpress.com workers.dev wpcomstaging.com yolasite.com zohosites.com")

// wordSet returns the set of the words of a text.
func wordSet(words string) map[string]bool { return setOf(strings.FieldsSeq(words)) }

func setOf(texts iter.Seq[string]) map[string]bool {
	set := make(map[string]bool)
	for text := range texts {
		set[text] = true
	}
	return set
}
