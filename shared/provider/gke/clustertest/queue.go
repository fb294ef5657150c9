package clustertest

import "net/http"

// theQueue are the promises about what a Job waits in.
func theQueue() map[string]func(scene) {
	all := map[string]func(scene){}
	for kind, api := range map[string]string{"ProvisioningRequest": "autoscaling.x-k8s.io/v1", "Workload": "kueue.x-k8s.io/v1beta2"} {
		plural := map[string]string{"ProvisioningRequest": "provisioningrequests", "Workload": "workloads"}[kind]
		all["queue: a "+kind+" is listed with its owner and its conditions"] = func(s scene) {
			path := "/apis/" + api + "/namespaces/" + s.ns + "/" + plural
			job := s.do(http.MethodPost, s.jobs(), s.idle("llama"))
			s.do(http.MethodPost, path, object{
				"apiVersion": api, "kind": kind,
				"metadata": object{"name": "llama-1", "ownerReferences": []any{object{"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": uid(job), "controller": true}}},
				"spec":     object{"active": true, "podSets": []any{object{"count": 2, "podTemplateRef": object{"name": "llama"}}}},
			})
			said := object{"status": object{"conditions": []any{object{
				"type": "Provisioned", "status": "False", "reason": "Waiting", "message": "there is no capacity", "lastTransitionTime": "2026-11-12T02:00:00Z",
			}}}}
			s.do(http.MethodPatch, path+"/llama-1", said)
			s.do(http.MethodPatch, path+"/llama-1/status", said)
			for _, path := range []string{path, "/apis/" + api + "/" + plural} {
				found := false
				for _, o := range list(s.read(path), "items") {
					m, _ := o.(object)
					if text(m, "metadata", "namespace") != s.ns {
						continue
					}
					owners := list(m, "metadata", "ownerReferences")
					owner, _ := owners[0].(object)
					found = text(owner, "uid") == uid(job) && text(conditionOf(m, "Provisioned"), "reason") == "Waiting" &&
						text(list(m, "spec", "podSets")[0], "podTemplateRef", "name") == "llama"
				}
				if !found {
					s.t.Errorf("%s lists it without them", path)
				}
			}
		}
	}
	all["queue: a PodTemplate is listed with what its Pods ask for"] = func(s scene) {
		const templates = "/podtemplates"
		template := s.template()
		template["metadata"] = object{"annotations": object{"a": "b"}}
		s.do(http.MethodPost, "/api/v1/namespaces/"+s.ns+templates, object{"apiVersion": "v1", "kind": "PodTemplate", "metadata": object{"name": "llama"}, "template": template})
		for _, path := range []string{"/api/v1/namespaces/" + s.ns + templates, "/api/v1" + templates} {
			var found any
			for _, o := range list(s.read(path), "items") {
				if text(o, "metadata", "namespace") == s.ns && text(o, "metadata", "name") == "llama" {
					found = field(o, "template")
				}
			}
			containers := list(found, "spec", "containers")
			if len(containers) != 1 || text(containers[0], "resources", "limits", "google.com/tpu") != "4" || text(found, "metadata", "annotations", "a") != "b" {
				s.t.Errorf("%s lists it as %v", path, found)
			}
		}
	}
	all["queue: a ProvisioningRequest is deleted after its owner"] = func(s scene) {
		path := "/apis/autoscaling.x-k8s.io/v1/namespaces/" + s.ns + "/provisioningrequests"
		owner := object{"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": uid(s.do(http.MethodPost, s.jobs(), s.idle("llama")))}
		for name, owners := range map[string][]any{"owned": {owner}, "mine": nil} {
			s.do(http.MethodPost, path, object{
				"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": object{"name": name, "ownerReferences": owners},
			})
		}
		s.do(http.MethodDelete, s.jobs()+"/llama", object{"propagationPolicy": "Background"})
		s.until("it is gone", func() bool { return s.gone(path + "/owned") })
		if s.gone(path + "/mine") {
			s.t.Error("one without an owner is gone, too")
		}
	}
	all["queue: a version that nobody serves is not found"] = func(s scene) {
		s.t.Helper()
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+"/apis/kueue.x-k8s.io/v9/workloads", http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.Token)
		res, err := s.HTTP.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		defer res.Body.Close()                     //nolint:errcheck // the code says it
		if res.StatusCode != http.StatusNotFound { // a real server writes no Status there
			s.t.Errorf("answer %d", res.StatusCode)
		}
	}
	return all
}
