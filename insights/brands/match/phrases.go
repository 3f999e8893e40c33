package match

// Phrases that say that nothing is known of a name; (a|b) is a choice, which may be nothing.

// phrasesBefore stand before the name.
var phrasesBefore = []string{
	`(i|we) (could not|couldn't|cannot|can't|can not|was unable to|were unable to|am unable to|are unable to|did not|didn't) (find|locate|identify|verify)`,
	`(i|we) found (nothing|no (information|info|results|records|mentions|evidence|data|details|prices|pricing|reviews)) (about|on|of|for)`,
	`(i|we) (do not|don't) have (|any )(information|data|details|records) (about|on|of|for)`,
	`(i|we) have no (|specific |reliable )(information|data|details|record|records) (about|on|of|for)`,
	`(i am|i'm|we are|we're) not (familiar with|aware of)`,
	`no (information|info|results|record|records|mention|mentions|trace) (about|on|of|for|called|named|regarding)`,
	`none of the (sources|results|pages|documents) (mention|mentions|mentioned|cover|covers|list|lists)`,
	`(sources|results) (do not|don't|did not|didn't) (mention|include|list|contain|cover)`,
	`non (ho|abbiamo) trovato (nulla|niente|informazioni|notizie|dati|riscontri|risultati|riferimenti|prezzi|alcuna informazione|alcun riferimento)`,
	`non (riesco|sono riuscito|sono riuscita|siamo riusciti) a (trovare|verificare|identificare|individuare)`,
	`non (ho|abbiamo|dispongo di|ci sono|esistono|risultano) (informazioni|notizie|dati|riferimenti|risultati) (su|sul|sull|sulla|di|del|della|riguardo|per)`,
	`non e stato possibile (trovare|verificare|identificare|individuare)`,
	`nessuna (informazione|notizia|menzione|traccia) (su|sul|sull|sulla|di|del|della|riguardo)`,
	`nessun (risultato|riferimento|dato) (su|sul|sull|sulla|di|del|della|per|a)`,
	`non conosco`,
	`keine (informationen|angaben|hinweise|ergebnisse|treffer|belege|eintrage) (zu|zum|zur|uber|von|fur|auf)`,
	`(ich habe|wir haben|habe ich|haben wir|ich konnte|wir konnten|konnte ich|konnten wir) (|leider )nichts (uber|zu|zum|zur)`,
	`(kein (unternehmen|produkt)|keine (firma|marke)) namens`,
	`(ich kenne|wir kennen) (kein|keine|keinen)`,
	`(je n'ai|nous n'avons) (pas trouve|rien trouve|trouve aucun|trouve aucune|pas pu trouver|pas pu verifier|pas pu identifier|pas reussi a trouver)`,
	`(aucune (information|mention|trace)|pas d'(information|informations)) (sur|de|concernant|a propos de)`,
	`aucun (resultat|document) (sur|pour|concernant)`,
	`je ne (trouve|connais) (pas|aucun|aucune|rien)`,
	`impossible de (trouver|verifier|identifier)`,
	`no (encontre|encontramos|he encontrado|hemos encontrado|logre encontrar)`,
	`no (pude|puedo|he podido|podemos) (encontrar|verificar|identificar|localizar)`,
	`no (hay|tengo|tenemos|existe|existen|dispongo de) (informacion|datos|resultados|registros|menciones) (sobre|de|acerca de|para)`,
	`(ninguna (informacion|mencion)|ningun (resultado|registro|dato)) (sobre|de|acerca de|para)`,
	`no conozco`,
}

// phrasesAfter stand after the name.
var phrasesAfter = []string{
	`(does not|doesn't|did not|didn't) appear in (|the |my |our |any |any of the |these )(search results|results|sources|data|records|documents)`,
	`(is not|isn't|was not|wasn't) mentioned in (|the |my |our |any |any of the |these )(search results|results|sources|data|records|documents)`,
	`non (ho|abbiamo) trovato (nulla|niente|informazioni|notizie|dati)`,
	`non (compare|appare|figura|risulta) (nei risultati|nei documenti|nei dati|nei miei dati|nelle fonti|nelle mie fonti|tra i risultati|tra le fonti)`,
	`(konnte|konnten|kann|habe|haben) (ich|wir) (|leider )(nicht|nichts|keine (informationen|angaben|daten|hinweise|belege)) (finden|gefunden|verifizieren|identifizieren)`,
	`ist mir (nicht bekannt|unbekannt)`,
	`(taucht|kommt|erscheint) in (den|meinen) (quellen|ergebnissen|suchergebnissen) nicht`,
	`(je n'ai|nous n'avons) (rien trouve|pas trouve|trouve aucune information)`,
	`(n'apparait pas|ne figure pas|n'est pas mentionne|n'est pas mentionnee) dans (les|mes) (resultats|sources|donnees|documents)`,
	`no (encontre|he encontrado|hemos encontrado) (nada|informacion|datos)`,
	`no (aparece|figura|se menciona) en (los resultados|los documentos|los datos|mis datos|las fuentes|mis fuentes)`,
}
