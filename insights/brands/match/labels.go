package match

// dropLabels replaces link labels of a unit that are not prose by spaces (M10): note marks, hosts and addresses.
// Their bare hosts stay for host-shaped names.
func (s *scratch) dropLabels(u *unit) {
	// Labels and hosts are both ordered, so one pass over the hosts is enough.
	k := u.hostStart
	for _, label := range s.labels[u.labelStart:u.labelEnd] {
		for k < u.hostEnd && s.hosts[k].start < label.start {
			k++
		}
		first := k
		for k < u.hostEnd && s.hosts[k].start < label.end {
			s.hosts[k].inLabel = true
			k++
		}
		// Other addresses are not in hosts. isProse recognizes them by gone.
		hosts := s.hosts[first:k]
		if !s.isProse(label, hosts) {
			s.eachOutside(label, hosts, func(i int32) bool {
				s.visible[i] = ' '
				return true
			})
		}
	}
}

// isProse reports whether a label has a letter outside of addresses, or else no address and more than three digits.
func (s *scratch) isProse(label span, hosts []host) bool {
	letter, link, digits := false, false, 0
	s.eachOutside(label, hosts, func(i int32) bool {
		switch r := s.visible[i]; {
		case r == gone:
			link = true
		case isLetter(r):
			letter = true
		case isDigit(r):
			digits++
		}
		return !letter
	})
	return letter || !link && len(hosts) == 0 && digits > 3
}

// eachOutside calls f for the visible characters of a label that belong to none of its hosts, until f returns false.
func (s *scratch) eachOutside(label span, hosts []host, f func(i int32) bool) {
	for i := label.start; i < label.end; i++ {
		if len(hosts) > 0 && i == hosts[0].start {
			i = hosts[0].end - 1
			hosts = hosts[1:]
			continue
		}
		if !f(i) {
			return
		}
	}
}
